/**
 * Measures how well search finds the answers to questions, side by side with plain BM25:
 * `npm run bench:recall [-- --data DIR] [--also DIR] [--only NAME] [--tune] [--json] [--doc]`.
 * Everything takes the real path: imported, compacted without a model, searched through the tool. With `--doc` the
 * figures of this run become docs/retrieval.md; `--tune` shows what other ranking rules would give.
 */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { readDataSets } from "./data.ts";
import { measure, type Measured } from "./measure.ts";
import { page, report, toJson } from "./report.ts";
import { storeDataSet } from "./store.ts";
import { tune } from "./tune.ts";
import { ours, oursWithAlso, plain, type Way } from "./ways.ts";

const ways: readonly Way[] = [plain, ours, oursWithAlso];

const { values } = parseArgs({
  options: {
    data: { type: "string", default: join(import.meta.dirname, "../../../shared/data") },
    also: { type: "string" },
    only: { type: "string", multiple: true },
    tune: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    doc: { type: "boolean", default: false },
  },
});
const folders = { data: values.data, also: values.also ?? values.data };
const sets = readDataSets(folders, (line) => process.stderr.write(`${line}\n`)).filter(
  ({ name }) => values.only === undefined || values.only.some((asked) => name.toLowerCase().startsWith(asked)),
);
if (values.tune) {
  const stored = await Promise.all(sets.map(storeDataSet));
  console.log(tune(stored));
  for (const { close } of stored) await close();
} else {
  const measured: Measured[] = [];
  for (const set of sets) {
    const stored = await storeDataSet(set);
    measured.push(await measure(stored, ways));
    await stored.close();
  }
  const parts = report(
    measured,
    ways.map(({ name }) => name),
    plain.name,
  );
  console.log(values.json ? JSON.stringify(toJson(measured), null, 2) : parts.join("\n\n"));
  if (values.doc) writeFileSync(join(import.meta.dirname, "../../docs/retrieval.md"), page(parts));
}
