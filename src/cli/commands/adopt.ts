/** `lcm adopt`: a database of the older program becomes ours, in place, after a backup. */

import { defineCommand, indexAll, withLcm } from "./_session.ts";
import { plural } from "../../core/base/format.ts";

export const adoptCommand = defineCommand({
  name: "adopt",
  summary: "move a database of lossless-claw 0.1 to 0.15 over to this one",
  description:
    "Move a database of the older lossless-claw (0.1 to 0.15) over, in place. A backup is made beside it first, every row is " +
    "kept, and search is rebuilt. Doing it twice does nothing.",
  examples: [
    ["lcm adopt", "the database of this user"],
    ["lcm adopt --db old/lcm.db", "another one"],
  ],
  async run(session) {
    const { database } = session;
    const adopted = await database.adopt();
    const indexed = await withLcm(session, "write", async (lcm) => await indexAll(session, lcm));
    if (session.json) return session.printJson({ ...adopted, path: database.path, indexed });
    if (adopted.kind === "unchanged") {
      const search = indexed === 0 ? "" : `; ${plural(indexed, "row")} indexed for search`;
      session.print(`nothing to do: ${database.path} is in the present format${search}`);
      return;
    }
    session.print(`adopted ${database.path}`);
    session.print(`  backup   ${adopted.backup}`);
    session.print(
      `  kept     ${plural(adopted.messages, "message")}, ${plural(adopted.parts, "part")}, ${plural(adopted.summaries, "summary", "summaries")}`,
    );
    session.print(`  search   ${plural(indexed, "row")} indexed`);
    session.note("`lcm doctor` checks that nothing is missing");
  },
});
