/**
 * Lists the session files of a host and whether each is stored. Files only grow and are stored in order, so checking the
 * last message is enough.
 */

import { glob, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Lcm } from "../core/lcm.ts";
import type { Conversation, ConversationId } from "../core/model/types.ts";
import { readTranscriptLine } from "../core/messages/transcript-line.ts";
import { openTranscript, readPart, sessionNameOf } from "./transcript-files.ts";
import { msToTimestamp } from "../core/base/time.ts";

/** A folder chosen by the user, or that of the host's agents. */
interface Sessions {
  readonly folder: string;
  readonly isNamed: boolean;
}

/** A host keeps the files of an agent in `sessions`; the user may name that folder, or one above it. */
const patternsOf = ({ isNamed }: Sessions): readonly string[] =>
  isNamed ? ["*.jsonl", "*/*.jsonl", "*/sessions/*.jsonl"] : ["*/sessions/*.jsonl"];

/** Newest first. `lcm` is null if there is no database. */
export async function hostTranscripts(sessions: Sessions, lcm: Lcm | null) {
  const conversations = (await lcm?.store.conversations({ includeHidden: true })) ?? [];
  const storedIn = Map.groupBy(conversations, ({ sessionId }) => sessionId);
  const paths = await Array.fromAsync(glob(patternsOf(sessions), { cwd: sessions.folder }));
  const found: Awaited<ReturnType<typeof look>> = [];
  for (let at = 0; at < paths.length; at += filesAtOnce) {
    const some = paths.slice(at, at + filesAtOnce).map((name) => look(join(sessions.folder, name), lcm, storedIn));
    found.push(...(await Promise.all(some)).flat());
  }
  return found.toSorted((a, b) => (a.modifiedAt < b.modifiedAt ? 1 : a.modifiedAt > b.modifiedAt ? -1 : 0));
}

const filesAtOnce = 16;

/** Empty if the file no longer exists. */
async function look(path: string, lcm: Lcm | null, storedIn: ReadonlyMap<string, readonly Conversation[]>) {
  const facts = await stat(path).catch(() => null);
  if (facts === null || !facts.isFile()) return [];
  const sessionId = await sessionIdOf(path);
  const stored = (storedIn.get(sessionId) ?? []).map(({ id }) => id);
  const isStored = lcm !== null && stored.length > 0 && (await holdsEndOf(lcm, stored, path, facts.size));
  const agentId = /agents[/\\]([^/\\]+)[/\\]sessions[/\\][^/\\]*$/.exec(path)?.[1] ?? null;
  const modifiedAt = msToTimestamp(facts.mtimeMs);
  return [{ path, bytes: facts.size, modifiedAt, sessionId, agentId, conversation: stored[0] ?? null, isStored }];
}

const headBytes = 16_384;

/** From its header, else from its name, like an import. */
async function sessionIdOf(path: string): Promise<string> {
  // A file that cannot be read is listed too; importing it reports why.
  const [first = ""] = (await readPart(path, 0, headBytes).catch(() => "")).toString().split("\n", 1);
  const read = readTranscriptLine(first, 1, msToTimestamp(0));
  return (read.kind === "item" ? read.sessionId : null) ?? sessionNameOf({ path });
}

async function holdsEndOf(
  { store }: Lcm,
  conversations: readonly ConversationId[],
  path: string,
  bytes: number,
): Promise<boolean> {
  const key = await lastKeyOf(path, bytes);
  if (key === null) return true;
  for (const conversation of conversations)
    if ((await store.messages({ conversation, keys: [key] })).length > 0) return true;
  return false;
}

const tailBytes = 65_536;

/** The key of the last message, read from the end; null if there is none. */
async function lastKeyOf(path: string, bytes: number): Promise<string | null> {
  for (let size = tailBytes; ; size *= 8) {
    const from = Math.max(0, bytes - size);
    const lines = (await readPart(path, from, bytes - from))
      .toString()
      .split("\n")
      .slice(from === 0 ? 0 : 1);
    const last = lines.findLast((line) => keyOf(line, 0) !== null);
    const key = last === undefined ? null : keyOf(last, 0);
    // A line without an id has its position as key, so all lines before it must be read.
    if (key === "@0") return await lastPositionOf(path, bytes);
    if (key !== null || from === 0) return key;
  }
}

async function lastPositionOf(path: string, bytes: number): Promise<string | null> {
  let last: string | null = null;
  const { lines } = await openTranscript({ path, bytes, isFound: true });
  for await (const line of lines) if ("text" in line) last = keyOf(line.text, line.position) ?? last;
  return last;
}

function keyOf(line: string, position: number): string | null {
  const read = readTranscriptLine(line, position, msToTimestamp(0));
  return read.kind === "item" && read.item.kind === "message" ? read.item.key : null;
}
