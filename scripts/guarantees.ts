/**
 * Lists what users can rely on and the tests that prove each promise: those whose name begins with its number. The
 * names are read from the test files; a promise without a test is an error.
 */

import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseSync, Visitor } from "oxc-parser";
import type { Argument, CallExpression } from "oxc-parser";

/** By group and number. A number stays with its promise, because tests are named after it. */
const promises: Readonly<Record<string, Readonly<Record<number, string>>>> = {
  "Nothing is lost or duplicated": {
    1: "**Every message the host sent is stored once.** Wherever a crash happens between the host's write and our answer, after the next bootstrap the set of stored keys equals the set of the host's entries. A skipped turn is counted and shown in status.",
    2: "**Replays are harmless.** Any prefix, suffix, interleaving or repetition of a transcript, live and by bootstrap, gives the same rows.",
    3: '**Repeats are kept.** N byte-equal messages with distinct keys are N rows ("ping", `{"status":"ok"}`, reused tool-call ids).',
    4: "**Exact round trip.** Every block kind (text, thinking with signature, tool call, tool result with details, image, unknown future kinds, string or array content) reads back deep-equal to what the host sent.",
    5: "**A message is never both in the context and under an in-context summary.** Every fold strictly lowers the context's tokens, or is not made.",
    6: "**The first bootstrap imports everything**, not only a recent part, and an interrupted import resumes.",
    7: "**No event deletes rows**: reset, new, session end, uninstall. Deleting takes an explicit command of an operator, which is a dry run by default.",
  },
  "Turns never wait": {
    8: "**Assembly makes no model call.** Even while the summary model hangs, a commit and an assembly take a few milliseconds.",
    9: "**One deadline covers all nested loops** of a compaction: it is inherited and never extended. Work done before it is kept, and is consistent.",
    10: "**The host's event loop is free.** Another process holding the write lock for 30 s, or a 1M-row search, delays no timer of the host by more than 20 ms.",
    11: "**Start-up is O(1)**: ready in under a second with a 5 GB database. Migrations run once, are versioned and resumable.",
  },
  "The model gets a valid prompt within budget": {
    12: "**Never over budget**: a prompt has no more tokens than the budget of the turn's first call, minus what the turn has added since. When even the fresh tail does not fit, it is cut by a fixed rule, and the cut is reported. The newest user message is always shown, in the user's own words, also when it is folded or evicted; only a large one is shortened.",
    13: "**Always a valid array**: every tool result follows its call, every call has its result or a marked stand-in; a result is never invented when the real row exists; roles are as the provider requires. Fuzz tests cover orders, delays, evictions and mid-session provider switches.",
    14: "**The live turn appears exactly once**, last, unchanged: we never add it ourselves and never drop it.",
    15: "**Prefix stability**: between compactions the assembled prefix is byte-identical and append-only (hash test over 1,000 turns). One compaction changes it once. Nothing before the tail contains the current time or text that changes with each turn.",
    16: "**Token estimates** are within ±15% on English, code, Chinese, Japanese, Korean, and rather too high than too low on JSON, logs and base64.",
    17: "**compact() tells the truth**: `compacted: true` only if tokens fell; otherwise a named reason. It never throws at the host.",
    35: "**What the model saw can be shown.** Our part of every prompt is recorded, and rebuilt to the byte, which a recorded hash proves, unless something in it was forgotten or deleted, the host put something else in its place, or another version rendered it; then it says which and why.",
    36: "**Standing instructions stay in the prompt**: what a user said for good is repeated after its summaries, verbatim and within its budget, when the message is folded or evicted. Nothing but users' own words is ever pinned by itself.",
  },
  "Summaries are safe and bounded": {
    18: '**A stored summary is shorter than its source, under its cap, free of reasoning text**, and records its level; `lcm doctor` reports everything below "normal", which can be rewritten later.',
    19: "**Summaries are data, not instructions**: escaped so that no message text can forge or close a wrapper; labelled as a record.",
    20: "**Spend is bounded and visible**: every model call is a row (purpose, model, tokens, result), a ceiling limits calls per window, and an overflow can always be resolved without a model.",
    21: "**Provider failures are classified by status, not by words in a message.** A refused credential opens a breaker, which pauses calls, and the status reports it.",
  },
  "Recall finds it, for the right reader": {
    22: '**No false "no matches"**: an invalid pattern, a time-out and a scan limit are reported as such. Search covers all rows, old ones too.',
    23: "**Search finds every kind of word**: two-character CJK words, emoji, identifiers, paths, error codes, other forms of a word, phrases.",
    24: "**expandQuery answers before its deadline**, with citations, partially if need be, and also where nothing has been summarised yet.",
    25: "**Readers stay within their reach**: a tool reads only its own conversation family, unless a wider reach is requested and allowed; a child grant is never wider than its parent; an expired or revoked grant reads nothing. Every tool has a negative test.",
    26: "**Files stay inside their folder**, private to the user; an id is never a path.",
    39: "**Search is no worse than plain BM25** on any data set that we measure.",
  },
  "Operators can see and undo": {
    27: "**One status shows everything**: what is stored and pending, the last compaction and what it saved, spend, fallbacks, whether anything is degraded, and settings with their source.",
    28: "**Writes are dry runs by default**, print the same plan everywhere, back up first, and can run while the host is running.",
    29: "**Timestamps are UTC with milliseconds** on disk and are shown in the user's zone; tests run in a non-UTC zone too.",
    34: "**Every long command** shows progress, stops on Ctrl-C and on its time limit, and says what is done and how to continue.",
  },
  "Accidents and attacks do no harm": {
    30: "**A power cut loses nothing**: content is durable before the row that refers to it, in ingest, backup, restore, archive and adoption. A lost commit is repeated from the host's transcript, or was durable before the call returned.",
    31: "**A backup is whole or is not one**: a restore verifies it before it touches anything, and an incomplete one never takes the place of a whole one.",
    32: "**Credentials and conversations go only to the configured host**: redirects are never followed, and answers are read up to a cap.",
    38: "**An adapter never breaks its agent**: whatever fails on our side, the agent goes on as if we were not there, and what was missed is stored later.",
    41: "**The explorer answers only who has its link, and only reads** unless it was started with `--write`: other programs, other pages and other host names are refused; nothing in a conversation runs in it or makes it load anything.",
    33: "**Damage is noticed**: every stored text has a checksum that `lcm doctor`, an export and a restore verify.",
  },
};

/** A test, or a group of tests, that is named after one promise or several. */
interface Proof {
  readonly numbers: readonly number[];
  readonly file: string;
  readonly title: string;
  /** The tests inside, if it is a group. */
  readonly tests: readonly string[];
}

export function guaranteesMarkdown(root: string): string {
  const proofs = globSync(["src/**/*.test.ts", "test/store-contract/*.ts", "test/**/*.test.ts"], {
    cwd: root,
    exclude: (path) => path.includes("node_modules"),
  })
    .map((file) => file.replaceAll("\\", "/"))
    .toSorted()
    .flatMap((file) => proofsIn(file, readFileSync(join(root, file), "utf8")));
  const groups = Object.entries(promises).map(([group, texts]) => {
    const sections = Object.entries(texts).map(([number, text]) => promiseMarkdown(Number(number), text, proofs));
    return [`## ${group}`, ...sections].join("\n\n");
  });
  const count = Object.values(promises).flatMap((texts) => Object.keys(texts)).length;
  return `# Guarantees

The project makes ${count} promises; a change that breaks one is a bug, whatever else it improves. Below each are the tests and
groups of tests named after it, ${proofs.length} in all. Those in \`test/host\` run against the real OpenClaw, those in
\`test/store-contract\` against every store.

${groups.join("\n\n")}
`;
}

function promiseMarkdown(number: number, text: string, proofs: readonly Proof[]): string {
  const own = proofs.filter(({ numbers }) => numbers.includes(number));
  if (own.length === 0) throw new Error(`guarantee ${number} has no test named after it`);
  const lines = own.map(({ file, title, tests }) =>
    [`- [${file}](../${file}): ${title}`, ...tests.map((test) => `  - ${test}`)].join("\n"),
  );
  const title = /\*\*(.*?)\.?\*\*/.exec(text)?.[1] ?? "";
  return `### ${number}. ${title}\n\n${text}\n\n${lines.join("\n")}`;
}

const named = /^guarantees? ([\d, ]+(?:(?:and|to) [\d, ]+)*)(?:, [a-z][^:]*)?: /;

function proofsIn(file: string, source: string): readonly Proof[] {
  if (!source.includes("guarantee")) return [];
  const found: { readonly call: CallExpression; readonly kind: string; readonly title: string }[] = [];
  new Visitor({
    CallExpression: (call) => {
      const kind = call.callee.type === "Identifier" ? call.callee.name : "";
      const title = titleOf(call.arguments[0]);
      if (title !== null && (kind === "describe" || kind === "it")) found.push({ call, kind, title });
    },
  }).visit(parseSync(file, source).program);
  return found
    .map(({ call: { start, end }, title }) => ({
      numbers: numbersIn(title),
      file,
      title: title.replace(named, "").replaceAll(/; guarantees? [\d, ]+: /g, "; "),
      tests: found
        .filter(({ call, kind }) => kind === "it" && call.start > start && call.end < end)
        .map((test) => test.title),
    }))
    .filter(({ numbers }) => numbers.length > 0);
}

/** The text in quotes; computed parts are shown as `…`. */
function titleOf(argument: Argument | undefined): string | null {
  if (argument?.type === "Literal" && typeof argument.value === "string") return argument.value;
  if (argument?.type !== "TemplateLiteral") return null;
  return argument.quasis.map(({ value }) => value.cooked ?? value.raw).join("…");
}

/** `guarantees 1 to 3, 12 and 13: …`; several may follow one another: `guarantee 12: …; guarantee 13: …`. */
function numbersIn(title: string): readonly number[] {
  if (!named.test(title)) return [];
  const lists = [...title.matchAll(/\bguarantees? ([\d, ]+(?:(?:and|to) [\d, ]+)*)/g)].map(([, list = ""]) => list);
  return lists.flatMap((list) =>
    [...list.matchAll(/(\d+)(?: to (\d+))?/g)].flatMap(([, from = "", to = from]) =>
      Array.from({ length: Number(to) - Number(from) + 1 }, (_, at) => Number(from) + at),
    ),
  );
}
