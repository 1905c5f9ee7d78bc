/** `lcm backup`: a whole copy, made while others write. */

import { defineCommand } from "./_session.ts";
import { formatBytes, plural } from "../../core/base/format.ts";

export const backupCommand = defineCommand({
  name: "backup",
  summary: "copy the database and its files, also while the host is running",
  description:
    "Copy the database and its stored files, also while the host is running. Without a path the copy is put beside the " +
    "database, where the newest three are kept.",
  arguments: [["[to]", "where to; such a copy is never removed"]],
  examples: [
    ["lcm backup", "beside the database"],
    ["lcm backup /mnt/usb/lcm-friday.db", "to a place of your own"],
  ],
  async run(session, _options, to?: string) {
    const made = await session.database.backup(to);
    if (session.json) return session.printJson(made);
    const files = made.files === 0 ? "" : ` and ${plural(made.files, "stored file")}`;
    session.print(`${made.path}: ${formatBytes(made.bytes)}${files}`);
    for (const old of made.pruned) session.note(session.paint.soft(`removed the older backup ${old}`));
  },
});
