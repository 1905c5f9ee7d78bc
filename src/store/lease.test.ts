import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { it } from "node:test";
import { makeScratch } from "../../test/support/scratch.ts";
import { takeLease } from "./lease.ts";

it("a lease has one holder, and is free again when that one gives it back or is killed", async () => {
  const path = join(makeScratch("lease"), "lease");
  const release = takeLease(path);
  assert.ok(release !== null);
  assert.equal(takeLease(path), null);
  release();
  const code = `const { takeLease } = await import(${JSON.stringify(new URL("lease.ts", import.meta.url).href)});
    takeLease(process.argv[1]); console.log("held"); setInterval(() => {}, 1000);`;
  const other = spawn(process.execPath, ["--input-type=module", "-e", code, path]);
  await once(other.stdout, "data");
  assert.equal(takeLease(path), null);
  other.kill("SIGKILL");
  await once(other, "close");
  const again = takeLease(path);
  assert.ok(again !== null);
  again();
});
