/** `lcm adopt`: converts a database of the older program in place, after a backup. */

import { either, object, oneOf, text, whole } from "./_json.ts";
import { defineCommand, indexAll, withLcm } from "./_session.ts";
import { plural } from "../../core/base/format.ts";

const adoptedFields = { path: text, indexed: whole };
const json = either(
  object({
    kind: oneOf("adopted"),
    backup: text,
    messages: whole,
    parts: whole,
    summaries: whole,
    ...adoptedFields,
  }),
  object({ kind: oneOf("unchanged"), ...adoptedFields }),
);

export const adoptCommand = defineCommand({
  name: "adopt",
  json,
  summary: "convert a database made by lossless-claw 0.1–0.15",
  description:
    "Convert a database of the older lossless-claw (0.1 to 0.15) in place. A backup is made first, every row is kept, and " +
    "the search index is rebuilt. A database that is already converted is left unchanged.",
  examples: [
    ["lcm adopt", "convert your own database"],
    ["lcm adopt --db old/lcm.db", "convert another one"],
  ],
  async run(session) {
    const { database } = session;
    const adopted = await database.adopt();
    const indexed = await withLcm(session, "write", async (lcm) => await indexAll(session, lcm));
    if (session.json) return session.printJson(json, { ...adopted, path: database.path, indexed });
    if (adopted.kind === "unchanged") {
      const search = indexed === 0 ? "" : `; ${plural(indexed, "row")} indexed for search`;
      session.print(`nothing to do: ${database.path} already has the current format${search}`);
      return;
    }
    session.print(`converted ${database.path}`);
    session.print(`  backup   ${adopted.backup}`);
    session.print(
      `  kept     ${plural(adopted.messages, "message")}, ${plural(adopted.parts, "part")}, ${plural(adopted.summaries, "summary", "summaries")}`,
    );
    session.print(`  search   ${plural(indexed, "row")} indexed`);
    session.note("run `lcm doctor` to check that nothing is missing");
  },
});
