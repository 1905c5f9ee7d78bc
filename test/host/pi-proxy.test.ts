/**
 * The real Pi through the proxy, without our extension: it sends no session id, and has no sub-agents. It runs over its own
 * rpc; /tree is not part of that, so an extension of the test's goes back for the user.
 */

import { before } from "node:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { piRows } from "../../src/hosts/shared/rows/pi.ts";
import { makeScratch } from "../support/scratch.ts";
import { pictureBytes } from "../support/picture.ts";
import { installPi } from "./install.ts";
import { createPiHome, startPi, transcriptsOf } from "./pi.ts";
import { describeProxied, type DrivenAgent } from "./proxy-scenarios.ts";

type Json = ReturnType<typeof JSON.parse>;

const goBack = `export default function (pi) {
  pi.registerCommand("go", { description: "", async handler(id, ctx) { await ctx.navigateTree(id, { summarize: false }); } });
}`;

async function start(base: string): Promise<DrivenAgent> {
  const home = createPiHome(makeScratch("pi"), { url: base }, { window: 80_000, isOurs: false, isSeeing: true });
  const helper = join(home.folder, "helper.js");
  writeFileSync(helper, goBack);
  let pi = await startPi(home, ["-e", helper]);
  const rows = (): readonly Json[] => transcriptsOf(home).flat();
  return {
    prompt: async (text) => await pi.say(text),
    show: async (text) => {
      const picture = { type: "image", data: pictureBytes(32).toString("base64"), mimeType: "image/png" };
      await pi.say(text, { images: [picture] });
    },
    async rewind(text) {
      const prompts = rows().filter(({ message }) => message?.role === "user");
      await pi.ask({ type: "prompt", message: `/go ${prompts.at(-1).id}` });
      await pi.say(text);
    },
    async resume() {
      await pi.end();
      pi = await startPi(home, ["-e", helper, "-c"]);
    },
    async fork(text) {
      const { sessionFile } = (await pi.ask({ type: "get_state" })).data;
      await pi.ask({ type: "clone" });
      await pi.say(text);
      await pi.ask({ type: "switch_session", sessionPath: sessionFile });
    },
    compact: async () => void (await pi.ask({ type: "compact" })),
    records() {
      // Its model does not see an answer again that broke off. A fork repeats the rows that it begins with.
      const said = rows().filter(({ message }) => message?.stopReason !== "error");
      return [{ sessionId: null, rows: [...new Map(said.map((row) => [row.id, row])).values()] }];
    },
    compactions: () => rows().filter(({ type }) => type === "compaction").length,
    close: async () => await pi.end(),
  };
}

before(async () => await installPi());

describeProxied({
  name: "Pi",
  wire: "chat",
  rows: piRows,
  shell: (command) => `CALL bash {"command":"${command}"}`,
  subagent: null,
  start,
});
