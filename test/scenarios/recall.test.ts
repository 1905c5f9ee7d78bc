/**
 * Recall at a terminal and by an agent: describe, expand, recent and ask by the real bin over the demo's conversation,
 * with and without a model that follows a script; and an agent that has nothing but its prompt and the tools.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { keyFacts } from "../../src/cli/demo/facts.ts";
import type { KeyFact } from "../../src/cli/demo/facts.ts";
import { holds } from "../../src/cli/recollect.ts";
import { widthOf } from "../../src/cli/render.ts";
import type { Assembly } from "../../src/core/assemble.ts";
import { createLcm } from "../../src/core/lcm.ts";
import type { Lcm } from "../../src/core/lcm.ts";
import type { Timestamp } from "../../src/core/model.ts";
import { openSqlite } from "../../src/store/sqlite.ts";
import { startScriptedProvider } from "../../src/testing/scripted-provider.ts";
import type { ScriptedProvider } from "../../src/testing/scripted-provider.ts";
import type { ToolContext } from "../../src/tools/tool.ts";
import { toolNamed } from "../../src/tools/tools.ts";
import { createFolder, lcm, lcmBeside, linesOf, ok } from "./program.ts";
import type { Place } from "./program.ts";

const state = createFolder();
let place: Place = { state };
let database = "";
/** The one summary in the context, and what it was made from. */
let [root, leaf] = ["", ""];
let file = "";

before(() => {
  const { kept } = ok({ state, env: { TMPDIR: state } }, "demo", "--keep", "--json").json;
  database = join(kept, "lcm.db");
  place = { state, env: { LCM_DATABASE_PATH: database, COLUMNS: "80" } };
  const { summaries } = ok(place, "dag", "1", "--json").json.tree[0] ?? {};
  assert.equal(summaries, undefined);
});
