/**
 * Who sends a request, for which session, and what for. Hosts say it in headers and fields of their own. What they do not
 * say stays null: the session is then found by what it says (find-session.ts).
 */

import { isObject, type JsonObject } from "../core/base/json.ts";
import { anthropic } from "./wires/anthropic.ts";
import { chat } from "./wires/chat.ts";
import { responses } from "./wires/responses.ts";
import { listIn, objectIn, parsedObject, textIn, type Wire } from "./wires/wire.ts";

export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

export interface Identity {
  readonly host: string;
  /** The host's own id of the session; null if it sends none. */
  readonly sessionId: string | null;
  readonly parentSessionId: string | null;
  /** `compaction`: the host asks for a summary. `side`: anything else that is not a turn, such as a title. */
  readonly kind: "turn" | "compaction" | "side";
  /** Why the request must not be changed; null if it may be. */
  readonly storeOnly: string | null;
}

export interface Endpoint {
  readonly wire: Wire;
  /** Whether it only counts the tokens of a request. */
  readonly isCount: boolean;
}

const endpoints: readonly (Endpoint & { readonly ending: string })[] = [
  { ending: "/v1/messages", wire: anthropic, isCount: false },
  { ending: "/v1/messages/count_tokens", wire: anthropic, isCount: true },
  { ending: "/chat/completions", wire: chat, isCount: false },
  { ending: "/responses", wire: responses, isCount: false },
  { ending: "/responses/input_tokens", wire: responses, isCount: true },
];

export function endpointOf(method: string | undefined, path: string): Endpoint | null {
  if (method !== "POST") return null;
  const [pathname = ""] = path.split("?");
  return endpoints.find(({ ending }) => pathname.endsWith(ending)) ?? null;
}

/** `rest` is the body without its messages; `last` is the last of them. */
export function identify(headers: Headers, rest: JsonObject, last: JsonObject | null): Identity {
  const known = sessionOf(headers, rest, last);
  const [sessionId, parentSessionId] = [usableId(known.sessionId), usableId(known.parentSessionId)];
  return { ...known, sessionId, parentSessionId, storeOnly: storeOnlyReason(headers, rest) };
}

/** A longer text is not an id, and would be in every row and status. */
const usableId = (id: string | null): string | null => (id !== null && id.length <= idLengthMax ? id : null);
const idLengthMax = 1_000;

type Known = Omit<Identity, "storeOnly">;

function sessionOf(headers: Headers, rest: JsonObject, last: JsonObject | null): Known {
  const header = (name: string): string | null => textIn(headers[name]) || null;
  const hasTools = listIn(rest["tools"]).length > 0;
  const plainKind = hasTools ? "turn" : "side";

  const claude = header("x-claude-code-session-id") ?? claudeSessionIn(rest);
  if (claude !== null) {
    const agent = header("x-claude-code-agent-id");
    const isCompaction = last !== null && asksForSummary.test(lastText(last));
    const kind = isCompaction ? "compaction" : plainKind;
    const session = { sessionId: agent ?? claude, parentSessionId: agent === null ? null : claude };
    return { host: "claude-code", ...session, kind };
  }

  const turn = parsedObject(header("x-codex-turn-metadata") ?? "") ?? {};
  const thread = header("thread-id") ?? (textIn(turn["thread_id"]) || null);
  if (thread !== null) {
    const asked = textIn(turn["request_kind"]) || "turn";
    const isCompaction = asked === "compaction" || last?.["type"] === "compaction_trigger";
    const kind = isCompaction ? "compaction" : asked === "turn" ? "turn" : "side";
    return { host: "codex", sessionId: thread, parentSessionId: header("x-codex-parent-thread-id"), kind };
  }

  const openCode = header("x-session-id");
  if (openCode !== null)
    return { host: "opencode", sessionId: openCode, parentSessionId: header("x-parent-session-id"), kind: plainKind };

  const host = hostNamed(header("user-agent"));
  // Other programs have one key of the cache for all their conversations.
  const cacheKey = host === "pi" ? textIn(rest["prompt_cache_key"]) || null : null;
  const sessionId = header("session_id") ?? cacheKey;
  // An unknown program may well have no tools.
  return { host, sessionId, parentSessionId: null, kind: host === "pi" ? plainKind : "turn" };
}

/** What a program calls itself, as a name of ours. */
function hostNamed(agent: string | null): string {
  const [, name = "agent"] = /^\s*([a-z][\w.-]{0,30})/i.exec(agent ?? "") ?? [];
  return name.toLowerCase();
}

function claudeSessionIn(rest: JsonObject): string | null {
  const user = textIn(objectIn(rest["metadata"])["user_id"]);
  const named = textIn(parsedObject(user)?.["session_id"]);
  return named || (/_session_([0-9a-f-]{36})$/.exec(user)?.[1] ?? null);
}

const asksForSummary = /^(?:CRITICAL: Respond with TEXT ONLY|Your task is to create a detailed summary)/;

function lastText({ content }: JsonObject): string {
  const block = Array.isArray(content) ? content.at(-1) : content;
  return isObject(block) ? textIn(block["text"]) : textIn(block);
}

/**
 * Requests that carry a mark over their whole body, and those of a subscription, belong to an agreement between the host
 * and its provider: they are stored and never changed.
 */
function storeOnlyReason(headers: Headers, rest: JsonObject): string | null {
  const { system } = rest;
  const first = Array.isArray(system) ? textIn(objectIn(system[0])["text"]) : textIn(system);
  if (/\bcch=/.test(first)) return "the request carries a mark over its whole body";
  const authorization = textIn(headers["authorization"]);
  const beta = String(headers["anthropic-beta"] ?? "");
  const isSubscription =
    /^Bearer (?:sk-ant-oat|eyJ)/i.test(authorization) ||
    /\boauth-/.test(beta) ||
    headers["chatgpt-account-id"] !== undefined;
  if (isSubscription) return "it is sent with a subscription, not with an API key";
  const refersBack = ["previous_response_id", "conversation"].find((field) => (rest[field] ?? null) !== null);
  return refersBack === undefined ? null : `it has only a part of the conversation (${refersBack})`;
}
