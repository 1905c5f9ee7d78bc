/**
 * Previews a large text in about 200 tokens, without a model, so that a reader can decide which lines to read.
 * The kind comes from name, type and content. Counts cover the whole text; costlier facts cover only its beginning and
 * end, and say so. Anything is at least text, so this cannot fail.
 */

import {
  countLines,
  cutLine,
  eachLine,
  firstLines,
  fit,
  headOf,
  lastLine,
  list,
  narrowed,
  outline,
  quote,
} from "./file-preview-lines.ts";
import { describeJson, describeTable } from "./file-preview-records.ts";
import type { StoredFile } from "../model/types.ts";
import { excerpt } from "../base/excerpt.ts";
import { formatCount, plural } from "../base/format.ts";

/** Includes line numbers (`L12`) for a reader who asks for more. */
export function previewFile(content: string, about: About): string {
  if (content.trim() === "") return "Nothing but blanks.";
  const hint = hintOf(about);
  const hinted = kinds.filter(({ describe }) => describe === hint?.describe);
  for (const { describe } of [{ describe: describeBinary }, ...hinted, ...kinds]) {
    const lines = describe(content, describe === hint?.describe ? hint.extension : null);
    if (lines !== null) return fit(lines);
  }
  return fit(describeText(content));
}

type About = Pick<StoredFile, "name" | "mimeType">;

/** Lines about a text, the most important first; null if it is of another kind. The hint is its extension. */
type Describe = (content: string, hint: string | null) => readonly string[] | null;

/** In the order in which they are tried: kinds that are easy to recognise come first. */
const kinds: readonly { readonly describe: Describe; readonly extensions: string }[] = [
  { describe: describeJson, extensions: "json jsonl ndjson geojson ipynb webmanifest" },
  { describe: describeDiff, extensions: "diff patch" },
  { describe: describeMarkup, extensions: "xml html htm xhtml svg rss atom plist" },
  { describe: describeLog, extensions: "log" },
  { describe: describeCode, extensions: "" },
  { describe: describeMarkdown, extensions: "md markdown mdx" },
  { describe: describeTable, extensions: "csv tsv psv" },
];

function hintOf({ name, mimeType }: About): { readonly describe: Describe; readonly extension: string } | null {
  const ofName = /\.(\w{1,12})$/.exec(name ?? "")?.[1];
  const ofType = /\/(?:x-)?(?:[\w.-]+\+)?([\w-]+)/.exec(mimeType ?? "")?.[1];
  for (const extension of [ofName?.toLowerCase(), ofType?.toLowerCase()]) {
    if (extension === undefined) continue;
    const kind = kinds.find(({ extensions }) => extensions.split(" ").includes(extension));
    if (kind !== undefined) return { describe: kind.describe, extension };
    if (languageOf(extension) !== undefined) return { describe: describeCode, extension };
  }
  return null;
}

const openings: readonly (readonly [string, string])[] = [
  ["iVBORw0KGgo", "a PNG picture"],
  ["/9j/", "a JPEG picture"],
  ["R0lGOD", "a GIF picture"],
  ["UklGR", "a WebP picture or a WAV sound"],
  ["JVBERi0", "a PDF document"],
  ["UEsDB", "a ZIP archive or an Office document"],
  ["H4sI", "gzip"],
];

function describeBinary(content: string): readonly string[] | null {
  const head = content.slice(0, 4_000);
  const dataUrl = /^data:([\w/+.-]*)[\w=;-]*;base64,/.exec(head);
  const encoded = head.slice(dataUrl?.[0].length ?? 0).replace(/[\r\n]/g, "");
  if (
    encoded.length >= 256 &&
    /^[A-Za-z0-9+/_-]+={0,2}$/.test(encoded) &&
    /\d/.test(encoded) &&
    /[A-Z]/.test(encoded)
  ) {
    const what = openings.find(([opening]) => encoded.startsWith(opening))?.[1] ?? dataUrl?.[1] ?? "unknown content";
    return [`Base64, about ${formatCount((content.length * 3) / 4)} bytes of ${what}. Not readable as text.`];
  }
  const odd = head.match(/[\u0000-\u0008\u000e-\u001a\ufffd]/g)?.length ?? 0;
  if (odd <= head.length / 20) return null;
  return [`Binary data, ${formatCount(content.length)} characters. Not readable as text.`];
}

function describeDiff(content: string): readonly string[] | null {
  if (!/^(?:diff --git |@@ -\d+|--- .+\n\+\+\+ )/m.test(content.slice(0, 4_000))) return null;
  const files: { name: string; line: number; added: number; removed: number }[] = [];
  const lines = eachLine(content, (line, number) => {
    const header = /^\+\+\+ (?:b\/)?(.+)|^diff --git .* b\/(.+)/.exec(line);
    const name = (header?.[1] ?? header?.[2])?.split("\t")[0]?.trim();
    const file = files.at(-1);
    if (name !== undefined) {
      if (file?.name === name) return;
      if (file !== undefined && name === "/dev/null") file.name += " (deleted)";
      else files.push({ name, line: number, added: 0, removed: 0 });
    } else if (file !== undefined && line.startsWith("+")) file.added++;
    else if (file !== undefined && line.startsWith("-") && !line.startsWith("--- ")) file.removed++;
  });
  const sum = (of: "added" | "removed"): string => formatCount(files.reduce((total, file) => total + file[of], 0));
  const largest = files.toSorted((one, other) => other.added + other.removed - one.added - one.removed);
  return [
    `Diff, ${plural(lines, "line")}: ${plural(files.length, "file")}, +${sum("added")} −${sum("removed")}.`,
    ...largest.slice(0, 20).map((file) => `- L${file.line} ${file.name} +${file.added} −${file.removed}`),
  ];
}

function describeMarkup(content: string): readonly string[] | null {
  const head = content.slice(0, 4_000);
  const root = /^\s*(?:<\?xml[^>]*>\s*|<!doctype[^>]*>\s*|<!--[\s\S]*?-->\s*)*<([A-Za-z][\w:.-]*)[\s/>]/i.exec(
    head,
  )?.[1];
  if (root === undefined) return null;
  const counts = new Map<string, number>();
  for (const [, name = ""] of content.matchAll(/<([A-Za-z][\w:.-]{0,60})/g))
    counts.set(name, (counts.get(name) ?? 0) + 1);
  const ranked = [...counts]
    .sort(([, one], [, other]) => other - one)
    .map(([name, count]) => `${name} ×${formatCount(count)}`);
  const title = /<title[^>]*>([^<]{1,200})/i.exec(headOf(content))?.[1];
  const isHtml = /^html$/i.test(root) || /<!doctype html/i.test(head);
  return [
    `${isHtml ? "HTML" : "XML"}, ${plural(countLines(content), "line")}, root <${root}>.`,
    ...(title === undefined ? [] : [`Title: ${quote(title)}`]),
    list("Elements", ranked, 16),
    ...(isHtml
      ? [`Text begins: ${quote(headOf(content).replace(/<(script|style)[\s\S]*?<\/\1>|<[^>]*>|\s+/gi, " "))}`]
      : []),
  ];
}

const lineTime = either(
  /\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?Z?/,
  /\d\d\/[A-Z][a-z]{2}\/\d{4}:\d\d:\d\d:\d\d/,
  /^[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d/,
  /\b\d\d:\d\d:\d\d\b(?:[.,]\d+)?/,
  /^\[ *\d+\.\d+\]/,
);
const levelNames = ["trace", "debug", "info", "notice", "warning", "error", "fatal", "critical", "panic"];
const lineLevel = /\b(trace|debug|info|notice|warn(?:ing)?|err(?:or)?|fatal|crit(?:ical)?|panic)\b/i;
const lineMark = /\b(?:DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL)\b|\blevel=|"level":/;
const lineStatus = /" ([1-5])\d\d /;
const messagesMax = 2_000;

function describeLog(content: string, hint: string | null): readonly string[] | null {
  const opening = firstLines(content, 50);
  const marked = opening.filter((line) => lineTime.test(line.slice(0, 80)) || lineMark.test(line.slice(0, 80)));
  const traced = opening.filter((line) => /^\s*(?:at |File "|Caused by|Traceback|\.{3} \d)/.test(line));
  if (marked.length + traced.length < 3 || marked.length === 0) return null;
  if (marked.length + traced.length < opening.length * (hint === null ? 0.5 : 0.2)) return null;

  const levels = new Map<string, number>();
  const troubles = new Map<string, { readonly line: number; readonly text: string; times: number }>();
  let [from, to] = ["", ""];
  const lines = eachLine(content, (line, number) => {
    const start = line.slice(0, 120);
    const time = lineTime.exec(start)?.[0];
    if (time !== undefined) [from, to] = [from === "" ? time : from, time];
    const status = lineStatus.exec(line)?.[1];
    const word = lineLevel.exec(start)?.[1]?.toLowerCase();
    const named = word === undefined ? undefined : levelNames.find((name) => name.startsWith(word));
    const level = status === undefined ? named : `${status}xx`;
    if (level === undefined) return;
    levels.set(level, (levels.get(level) ?? 0) + 1);
    if (!/^(?:error|fatal|critical|panic|5xx)/.test(level)) return;
    const text = line.slice(time === undefined ? 0 : line.indexOf(time) + time.length).replace(/^[\s\]]+/, "");
    const key = text.replace(/\b[0-9a-f]{8,}\b|\d+/gi, "#").slice(0, 80);
    const known = troubles.get(key);
    if (known !== undefined) known.times++;
    else if (troubles.size < messagesMax) troubles.set(key, { line: number, text, times: 1 });
  });
  const frequent = [...troubles.values()].sort((one, other) => other.times - one.times);
  const counts = [...levels].map(([level, count]) => `${level} ${formatCount(count)}`);
  return [
    `Log, ${plural(lines, "line")}${from === "" ? "" : `, from ${from} to ${to}`}.`,
    ...(counts.length > 0 ? [list("Levels", counts, 8)] : []),
    ...(frequent.length > 0 ? ["Most frequent errors:"] : []),
    ...frequent.slice(0, 6).map(({ line, text, times }) => `- ${times}× ${cutLine(text, 120, 30)} (first L${line})`),
    `Last line: ${quote(lastLine(content))}`,
  ];
}

/** Combines patterns of the same flags. */
function either(...patterns: readonly RegExp[]): RegExp {
  return new RegExp(patterns.map(({ source }) => source).join("|"), patterns[0]?.flags);
}

interface Language {
  readonly name: string;
  readonly extensions: string;
  readonly imports: RegExp;
  readonly outline: RegExp;
}

const modifier = "public|private|protected|internal|static|final|abstract|override|sealed|open|data|suspend|async";

/** `outline` matches from the start of a line to the end of the name that it defines. */
const languages: readonly Language[] = [
  {
    name: "TypeScript or JavaScript",
    extensions: "ts tsx mts cts js jsx mjs cjs typescript javascript vue svelte",
    imports: /^import\b|^(?:const|let|var) .{1,80}= require\(/,
    outline: either(
      /^(?:export (?:default )?)?(?:declare |abstract |async )*(?:function\*?|class|interface|type|enum) [\w$]+/,
      /^export (?:const|let) [\w$]+|^export default\b/,
      /^(?:const|let) [\w$]+(?=(?:: [^=]{1,80})? = (?:async )?(?:\(|function))/,
      /^ {2,4}(?:static |async |private |public |readonly )*[\w$]+(?=\([^;]{0,120}\)(?:: [^;{]{1,60})? \{$)/,
      /^describe\("[^"]*"/,
    ),
  },
  {
    name: "Python or Ruby",
    extensions: "py pyi rb python ruby",
    imports: /^(?:import|from|require|require_relative)\s/,
    outline: /^\s*(?:async )?(?:def|class|module) [\w.]+/,
  },
  {
    name: "Go",
    extensions: "go",
    imports: /^import |^\t"[\w./-]+"$/,
    outline: /^func (?:\([^)]*\) )?\w+|^type \w+/,
  },
  {
    name: "Rust",
    extensions: "rs rust",
    imports: /^use /,
    outline: either(
      /^\s*(?:pub(?:\([^)]*\))? )?(?:async |unsafe |const )*(?:fn|struct|enum|trait|mod) \w+/,
      /^impl\b[^{]{1,60}|^macro_rules! \w+/,
    ),
  },
  {
    name: "Java, Kotlin, C#, Swift or PHP",
    extensions: "java kt kts cs swift scala php groovy dart",
    imports: /^\s*(?:import|using|use) [\w.\\]+/,
    outline: either(
      new RegExp(String.raw`^\s*(?:(?:${modifier}) )*(?:class|interface|enum|record|struct|protocol|trait|object) \w+`),
      new RegExp(String.raw`^\s*(?:(?:${modifier}) )*(?:fun|func|function|extension) \w+`),
      /^\s*(?:public|private|protected) [\w<>[\], ?.]+(?=\()/,
    ),
  },
  {
    name: "C or C++",
    extensions: "c h cc cpp cxx hpp hh m",
    imports: /^#include/,
    outline: either(
      /^[A-Za-z_][\w:<>*& ]{1,80} \**[\w:~]+(?=\([^;]*$)/,
      /^(?:typedef )?(?:struct|enum|union|class|namespace) \w+|^#define \w+(?=\()/,
    ),
  },
  {
    name: "SQL",
    extensions: "sql",
    imports: /^\s*(?:USE|\\i) /i,
    outline: either(
      /^\s*(?:CREATE|ALTER|DROP) (?:[A-Z]+ ){1,4}(?:IF (?:NOT )?EXISTS )?[\w."]+/i,
      /^(?:WITH|SELECT|INSERT INTO|UPDATE|DELETE FROM)\b.{0,40}/i,
    ),
  },
  {
    name: "shell",
    extensions: "sh bash zsh fish shellscript",
    imports: /^\s*(?:source|\.) \S/,
    outline: /^(?:function )?[\w-]+ ?(?=\(\))|^(?:case|for|while|if) .{1,40}/,
  },
  {
    name: "configuration",
    extensions: "yaml yml toml ini conf cfg env properties",
    imports: /^(?!)/,
    outline: /^[\w."'/-]+(?=\s*[:=])|^\[+[^\]]+\]/,
  },
];

function describeCode(content: string, hint: string | null): readonly string[] | null {
  const language = hint === null ? guessLanguage(content) : languageOf(hint);
  if (language === undefined) return null;
  const definitions: Parameters<typeof outline>[1][number][] = [];
  let imports = 0;
  const visit = (text: string, line: number): void => {
    if (language.imports.test(text)) imports++;
    const name = language.outline.exec(text)?.[0];
    if (name !== undefined) definitions.push({ text: `L${line} ${name.trim()}`, isInner: /^\s/.test(name) });
  };
  const lines = plural(eachLine(content, visit, 200), "line");
  const counts = `${lines}, ${plural(imports, "import line")}, ${plural(definitions.length, "definition")}`;
  return outline(`Source text (${language.name}), ${counts}`, definitions);
}

const languageOf = (extension: string): Language | undefined =>
  languages.find(({ extensions }) => extensions.split(" ").includes(extension));

/** The language with the most definitions and imports in the first lines, if there are enough. */
function guessLanguage(content: string): Language | undefined {
  if (/^#!.*sh\b/.test(content.slice(0, 200))) return languages.find(({ name }) => name === "shell");
  const lines = firstLines(content, 300);
  if (lines.filter((line) => line.startsWith("```")).length > 1) return undefined;
  const isMarked = (line: string): boolean => /[{};:,()[\]]\s*$|^\s+\S/.test(line);
  if (lines.filter(isMarked).length < lines.length / 2) return undefined;
  const scores = languages.map(({ name, imports, outline }) => {
    const isVague = name === "shell" || name === "configuration";
    return isVague ? 0 : lines.filter((line) => imports.test(line) || outline.test(line)).length;
  });
  const most = Math.max(...scores);
  return most >= 2 && most >= lines.length / 40 ? languages[scores.indexOf(most)] : undefined;
}

function describeMarkdown(content: string, hint: string | null): readonly string[] | null {
  const headings: Parameters<typeof outline>[1][number][] = [];
  let isFenced = false;
  let blocks = 0;
  const lines = eachLine(content, (line, number) => {
    if (/^\s*(?:```|~~~)/.test(line)) {
      isFenced = !isFenced;
      if (isFenced) blocks++;
    }
    const [, marks, text] = (isFenced ? null : /^(#{1,6})\s+(\S.*)/.exec(line)) ?? [];
    if (marks !== undefined) headings.push({ text: `${marks} L${number} ${text}`, isInner: marks.length > 2 });
  });
  const isMarkdown = headings.length > 1 && /^(?:#{2,6} |```|[-*] |\|.*\||\d+\. )|\]\(/m.test(headOf(content));
  if (headings.length === 0 || (hint === null && !isMarkdown)) return null;
  const counts = `${plural(lines, "line")}, ${plural(blocks, "code block")}, ${plural(headings.length, "heading")}`;
  return outline(`Markdown, ${counts}`, headings);
}

/** With more characters per word than this, the text has no words to count. */
const wordCharsMax = 20;

const endOf = (text: string): string =>
  narrowed((width) => excerpt(text, { from: text.length, to: text.length }, width), 240, 60);

function describeText(content: string): readonly string[] {
  let words = 0;
  const lines = eachLine(content, (line) => (words += line.match(/\S+/g)?.length ?? 0), Infinity);
  const counted = content.length > wordCharsMax * words ? "" : `${plural(words, "word")}, `;
  const ends = content.length > 800 ? [`Ends: ${endOf(content.slice(-2_000).replace(/\s+/g, " ").trim())}`] : [];
  return [
    `Text, ${plural(lines, "line")}, ${counted}${formatCount(content.length)} characters.`,
    `Begins: ${cutLine(content.slice(0, 2_000).replace(/\s+/g, " "), 320, 64)}`,
    ...ends,
  ];
}
