/** The real OpenCode through the proxy, over its own server. */

import type { Json as Row } from "../../src/core/base/json.ts";
import { openCodeRows } from "../../src/hosts/shared/rows/opencode.ts";
import { pictureBytes } from "../support/picture.ts";
import { createHome, databaseRows, removeHome, startOpenCode } from "./opencode-server.ts";
import { describeProxied, type DrivenAgent } from "./proxy-scenarios.ts";

type Json = ReturnType<typeof JSON.parse>;

async function start(base: string): Promise<DrivenAgent> {
  const modalities = { input: ["text", "image"], output: ["text"] };
  const model = { attachment: true, reasoning: true, modalities };
  const home = createHome({ modelUrl: base, limit: { context: 80_000, output: 4_000 }, model });
  let host = await startOpenCode(home);
  const session = await host.createSession();
  const [sessions, forks] = [new Set([session]), new Set<string>()];
  // It deletes what was taken back.
  const rows = new Map<string, Map<string, Row>>();
  const read = (): void => {
    for (const id of sessions)
      for (const row of databaseRows(home, id))
        rows.set(id, (rows.get(id) ?? new Map<string, Row>()).set(row.info.id, row));
  };
  const say = async (id: string, ...parts: readonly object[]): Promise<void> => {
    await host.request("POST", `/session/${id}/message`, { parts });
    for (const child of await host.request("GET", `/session/${id}/children`)) sessions.add(child.id);
    read();
  };
  return {
    prompt: async (text) => await say(session, { type: "text", text }),
    show: async (text) => {
      const url = `data:image/png;base64,${pictureBytes(32).toString("base64")}`;
      await say(session, { type: "text", text }, { type: "file", mime: "image/png", filename: "picture.png", url });
    },
    async rewind(text) {
      const prompts = databaseRows(home, session).filter(({ info }) => info.role === "user");
      await host.request("POST", `/session/${session}/revert`, { messageID: prompts.at(-1).info.id });
      await say(session, { type: "text", text });
    },
    async resume() {
      await host.kill();
      host = await startOpenCode(home);
    },
    async fork(text) {
      const { id } = await host.request("POST", `/session/${session}/fork`, {});
      for (const set of [sessions, forks]) set.add(id);
      await say(id, { type: "text", text });
    },
    async compact() {
      const model = { providerID: "scripted", modelID: "scripted" };
      await host.request("POST", `/session/${session}/summarize`, model);
      read();
    },
    records: () =>
      [...rows].map(([sessionId, byId]) => ({ sessionId, rows: [...byId.values()], isCopy: forks.has(sessionId) })),
    compactions: () =>
      databaseRows(home, session).filter(({ parts }) => parts.some(({ type }: Json) => type === "compaction")).length,
    async close() {
      await host.kill();
      removeHome(home);
    },
  };
}

describeProxied({
  name: "OpenCode",
  wire: "chat",
  rows: openCodeRows,
  shell: (command) => `CALL bash {"command":"${command}","description":"numbers"}`,
  subagent: (task) => `CALL task {"description":"a small task","prompt":"${task}","subagent_type":"general"}`,
  start,
});
