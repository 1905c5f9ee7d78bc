/** Holds a database open in another process, as a backup, a vacuum or a database editor does beside a gateway. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";

/** Runs the SQL, and keeps its locks until released. */
export async function hold(path: string, how: string): Promise<{ release(): Promise<void> }> {
  const script = `
    const { DatabaseSync } = require("node:sqlite");
    const db = new DatabaseSync(process.argv[1], { timeout: 20_000 });
    db.exec(${JSON.stringify(how)});
    console.log("held");
    process.stdin.on("end", () => db.close()).resume();`;
  const child = spawn(process.execPath, ["-e", script, path], { stdio: ["pipe", "pipe", "inherit"] });
  const closed = once(child, "close");
  await Promise.race([once(child.stdout, "data"), closed.then(() => assert.fail("the database could not be locked"))]);
  return {
    async release() {
      child.stdin.end();
      await closed;
    },
  };
}
