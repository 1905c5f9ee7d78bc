/** A world of conversations for the agent's tools. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { createLcm } from "../../src/core/lcm.ts";
import type { Lcm } from "../../src/core/lcm.ts";
import type { ConversationId, FileId, GrantId, MessageId, SummaryId } from "../../src/core/model/types.ts";
import type { Model } from "../../src/core/model/store.ts";
import { resolveSettings } from "../../src/core/model/settings.ts";
import { estimateTokens } from "../../src/core/base/tokens.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { makeScratch } from "./scratch.ts";
import { createHost, toAppendable, user } from "./scripted-host.ts";
import type { ToolContext, ToolResult } from "../../src/agent-tools/define.ts";
import { tools } from "../../src/agent-tools/all.ts";
import type { Json } from "../../src/core/base/json.ts";
import type { Timestamp } from "../../src/core/base/time.ts";

export const folder = makeScratch("tools");

export const now = "2026-02-17T09:00:00.000Z" as Timestamp;
export const later = "2999-01-01T00:00:00.000Z" as Timestamp;
let databases = 0;
/** Of the database that was opened last. */
export const newestFolder = (): string => join(folder, String(databases));

export async function openLcm(
  more: { readonly config?: Record<string, Json>; readonly model?: Model } = {},
): Promise<Lcm> {
  const path = join(folder, `${++databases}`, "lcm.db");
  const store = await openSqlite({ path, housekeeping: false, now: () => now });
  const { values: settings } = resolveSettings({ env: {}, config: more.config ?? {} });
  return createLcm({ store, clock: { now: () => now }, settings, model: more.model ?? null });
}

/** A conversation in which one thing is kept secret: in a message, in a leaf over it, and in a file. */
export interface Place {
  readonly id: ConversationId;
  readonly secret: string;
  readonly message: MessageId;
  readonly leaf: SummaryId;
  readonly file: FileId;
}

export async function makePlace(
  lcm: Lcm,
  secret: string,
  session: { readonly sessionId: string; readonly sessionKey: string; readonly agentId: string | null },
): Promise<Place> {
  const { store } = lcm;
  const { id } = await store.openSegment(session);
  const host = createHost(secret);
  host.says(user("What is the secret of this place?"));
  host.says({ role: "assistant", content: [{ type: "text", text: `The secret is ${secret}, said the keeper.` }] });
  for (let turn = 0; turn < 4; turn++) host.says(user(`Small talk number ${turn} about the weather.`));
  const { messages } = await store.append(id, host.entries.map(toAppendable));
  const run = (await store.context(id)).slice(0, 4);
  const text = `They spoke of the secret: ${secret}.`;
  const folded = await store.fold(id, run, {
    text,
    tokens: estimateTokens(text),
    level: "normal",
    model: null,
    previousContext: null,
    fileIds: [],
  });
  const leaf = folded.kind === "written" ? folded.summary : assert.fail("folded");
  const content = `first line\nthe secret is ${secret}\nlast line\n`;
  const file = await store.saveFile({
    conversation: id,
    name: "notes.txt",
    mimeType: "text/plain",
    content,
    encoding: "utf8",
    exploration: "Three lines.",
  });
  return { id, secret, message: messages[1] ?? assert.fail("stored"), leaf, file: file.id };
}

/** Two segments of one session, another session of the agent, another agent's, one without an agent, a hidden one. */
async function makeWorld() {
  const lcm = await openLcm();
  const ada = { sessionId: "s1", sessionKey: "ada:main", agentId: "ada" };
  const earlier = await makePlace(lcm, "amber", ada);
  const own = await makePlace(lcm, "basalt", { ...ada, sessionId: "s2" });
  const sister = await makePlace(lcm, "copper", { ...ada, sessionId: "s3", sessionKey: "ada:other" });
  const stranger = await makePlace(lcm, "diamond", { sessionId: "s4", sessionKey: "bob:main", agentId: "bob" });
  const nobodys = await makePlace(lcm, "emerald", { sessionId: "s5", sessionKey: "x", agentId: null });
  const hidden = await makePlace(lcm, "feldspar", { ...ada, sessionId: "s6", sessionKey: "ada:gone" });
  await lcm.store.setHidden(hidden.id, true);
  return { lcm, earlier, own, sister, stranger, nobodys, hidden };
}
type World = Awaited<ReturnType<typeof makeWorld>>;
export const world: World = await makeWorld();

export const call = async (name: string, args: unknown, context: ToolContext): Promise<ToolResult> => {
  const result = await (tools.find((tool) => tool.name === name) ?? assert.fail(`there is ${name}`)).run(args, context);
  assert.deepEqual(JSON.parse(JSON.stringify(result.details)), result.details, "details are JSON");
  return result;
};
export const codeOf = ({ details, isError }: ToolResult): string => {
  const error = details["error"];
  if (!isError) return "answered";
  const code = typeof error === "object" && error !== null && "code" in error ? error["code"] : null;
  return typeof code === "string" ? code : "?";
};

export const issue = async (conversations: readonly ConversationId[], tokenCap = 10_000): Promise<GrantId> =>
  (await world.lcm.store.issueGrant({ conversations, tokenCap, expiresAt: later, parent: null })).id;
