/**
 * Writes down what a real agent sent, as a fixture for test/proxy/recorded.test.ts: `BODIES=write npm run test:host -- NAME`.
 * What is the agent's own (instructions, tools, reminders) is replaced by short words of the same shape, and nothing of the
 * machine is kept. Equal texts stay equal.
 */

import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { StrictAnswer, StrictProvider, StrictRequest, WireName } from "../support/strict-provider.ts";

type Json = ReturnType<typeof JSON.parse>;

export interface Recording {
  readonly wire: WireName;
  readonly path: string;
  /** Bodies without their messages, each as often as it differs. */
  readonly rests: readonly Json[];
  /** All messages, each once. */
  readonly elements: readonly Json[];
  readonly requests: readonly RecordedRequest[];
}

export interface RecordedRequest {
  readonly headers: Readonly<Record<string, string>>;
  /** `other` is what the agent asks for itself: a summary, a title. */
  readonly kind: "turn" | "other";
  readonly rest: number;
  /** The messages are the first `keep` of the request with the number `like`, then these, by their numbers. */
  readonly like: number;
  readonly keep: number;
  readonly more: readonly number[];
  /** Null if the connection broke. */
  readonly answer: StrictAnswer | null;
}

/** Call it before the first request; what it returns writes the fixture. */
export function recordFrom(provider: StrictProvider, wire: WireName): (name: string) => void {
  const answers = new Map<StrictRequest, StrictAnswer>();
  const { answer } = provider;
  provider.answer = (...asked) => {
    const given = answer(...asked);
    const request = provider.requests.at(-1);
    if (request !== undefined) answers.set(request, given);
    return given;
  };
  return (name) => {
    const field = wire === "responses" ? "input" : "messages";
    const rests: string[] = [];
    const elements: string[] = [];
    const lists: number[][] = [];
    const requests = provider.requests.map((request, at): RecordedRequest => {
      const { [field]: list, ...rest } = request.body;
      const numbers: number[] = list.map((element: Json) => numberIn(elements, JSON.stringify(trimmed(element))));
      // The messages keep their place among the fields.
      const around = JSON.stringify(trimmedRest({ ...request.body, [field]: [] }));
      const same = lists.map((other) => commonLength(other, numbers));
      const keep = Math.max(0, ...same);
      lists.push(numbers);
      return {
        headers: headersOf(request),
        kind: isAsked(request, list, rest) ? "other" : "turn",
        rest: numberIn(rests, around),
        like: Math.max(0, same.lastIndexOf(keep)),
        keep: at === 0 ? 0 : keep,
        more: numbers.slice(keep),
        answer: request.aborted ? null : trimmed(answers.get(request) ?? null),
      };
    });
    const parsed = (texts: readonly string[]): readonly Json[] => texts.map((text) => JSON.parse(text));
    const [{ path } = { path: "" }] = provider.requests;
    const recording: Recording = { wire, path, rests: parsed(rests), elements: parsed(elements), requests };
    const file = new URL(`../fixtures/proxy/${name}.json`, import.meta.url);
    writeFileSync(fileURLToPath(file), `${JSON.stringify(recording)}\n`);
  };
}

/** Where it is in the list, to whose end it is added if it is new. */
function numberIn(list: string[], text: string): number {
  const known = list.indexOf(text);
  return known < 0 ? list.push(text) - 1 : known;
}

function commonLength(one: readonly number[], other: readonly number[]): number {
  const at = other.findIndex((number, nth) => number !== one[nth]);
  return at < 0 ? other.length : at;
}

function headersOf({ headers }: StrictRequest): Readonly<Record<string, string>> {
  const kept = ["x-claude-code-session-id", "x-claude-code-agent-id", "thread-id", "x-codex-parent-thread-id"];
  const found = [...kept, "x-session-id", "x-parent-session-id"].flatMap((name): [string, string][] =>
    typeof headers[name] === "string" ? [[name, headers[name]]] : [],
  );
  const { thread_id, request_kind } = JSON.parse(String(headers["x-codex-turn-metadata"] ?? "{}"));
  if (request_kind !== undefined) found.push(["x-codex-turn-metadata", JSON.stringify({ thread_id, request_kind })]);
  const [agent = ""] = String(headers["user-agent"]).split(" ");
  return Object.fromEntries(found.length > 0 ? found : [["user-agent", agent]]);
}

function isAsked({ headers }: StrictRequest, list: readonly Json[], { tools = [] }: Json): boolean {
  const ending = JSON.stringify(list.at(-1)?.content?.at?.(-1) ?? "");
  return (
    tools.length === 0 ||
    ending.includes("CRITICAL: Respond with TEXT ONLY") ||
    String(headers["x-codex-turn-metadata"] ?? "").includes('"request_kind":"compaction"')
  );
}

// ── Stand-ins ────────────────────────────────────────────────────────────────────────────────────────────────────────

function trimmedRest(body: Json): Json {
  const tools = (body.tools ?? []).slice(0, 3).map((tool: Json, nth: number) => toolLike(tool, `tool_${nth + 1}`));
  const rest = { ...body, ...(body.tools === undefined ? {} : { tools }) };
  if (rest.instructions !== undefined) rest.instructions = "Instructions of the agent.";
  if (rest.system !== undefined)
    rest.system = rest.system.map((block: Json) => ({ ...block, text: "Instructions of the agent." }));
  if (rest.metadata?.user_id !== undefined)
    rest.metadata = { user_id: JSON.stringify({ session_id: JSON.parse(rest.metadata.user_id).session_id }) };
  delete rest.client_metadata;
  return trimmed(rest);
}

function toolLike(tool: Json, name: string): Json {
  if (tool.function !== undefined) return { ...tool, function: toolLike(tool.function, name) };
  const parameters = { type: "object", properties: {} };
  return {
    ...tool,
    name,
    ...(tool.description === undefined ? {} : { description: "A tool of the agent." }),
    ...(tool.parameters === undefined ? {} : { parameters }),
    ...(tool.input_schema === undefined ? {} : { input_schema: parameters }),
    ...(tool.tools === undefined ? {} : { tools: [] }),
  };
}

const oursMax = 64;
/** What tells us what a text of the agent's is. */
const theirsMax = 64;
const pictureMin = 300;

/** What prompts and answers of the tests contain. */
const isOurs = (text: string): boolean => /turn \d+|Reply \d+|calling |Summary \d+|in a fork|a small task/.test(text);

function trimmed(value: Json): Json {
  if (Array.isArray(value)) return value.map(trimmed);
  if (typeof value === "object" && value !== null) {
    if (value.role === "system" || value.role === "developer")
      return { ...value, content: "Instructions of the agent." };
    return Object.fromEntries(Object.entries(value).map(([field, inner]) => [field, trimmed(inner)]));
  }
  return typeof value === "string" ? trimmedText(value) : value;
}

function trimmedText(given: string): string {
  const text = given.replaceAll(/\/(?:dev\/shm|tmp|home|root|work)\/[\w.-]+/g, "/home/agent");
  const [, kind, data] = /^(data:image\/png;base64,|)(iVBOR[\w+/=]+)$/.exec(text) ?? [];
  if (data !== undefined && data.length > pictureMin) return `${kind}iVBORw0KGgo=`;
  const max = isOurs(text) && !/^\s*</.test(text) ? oursMax : theirsMax;
  if (text.length <= max) return text;
  const mark = createHash("sha256").update(text).digest("hex").slice(0, 8);
  const [, tag] = /^\s*<([\w-]+)>/.exec(text) ?? [];
  return tag === undefined ? `${text.slice(0, max)}… ${mark}` : `<${tag}>\n${mark.slice(0, 4)}\n</${tag}>`;
}
