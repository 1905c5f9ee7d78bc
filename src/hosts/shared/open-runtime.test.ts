/** The runtime that engines and the companion's background share, with the database of the command line. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { identify } from "../../store/sqlite/file-kind.ts";
import { copyFixture } from "../../../test/support/older-database.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { openRuntime } from "./open-runtime.ts";

describe("guarantee 38: the database of another program", () => {
  it("is left as it is, and the words say how to convert it", async () => {
    const path = copyFixture("0.15.3", makeScratch("older"));
    const logger = { info: () => undefined, warn: () => undefined, error: () => undefined };
    const runtime = await openRuntime({ LCM_DATABASE_PATH: path }, logger);
    await assert.rejects(runtime.open(), { code: "conflict", hint: /lcm adopt/ });
    assert.equal(identify(path), "older_program");
    await runtime.close();
  });
});
