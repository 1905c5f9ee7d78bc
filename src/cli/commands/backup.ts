/** `lcm backup`: copies the whole database while other programs write to it. */

import { about, list, object, text, whole } from "./_json.ts";
import { backupFields } from "./_shapes.ts";
import { defineCommand } from "./_session.ts";
import { formatBytes, plural } from "../../core/base/format.ts";

const json = object({
  ...backupFields,
  files: whole,
  lost: about(whole, "stored files that the database itself no longer has, so that the backup lacks them too"),
  pruned: list(text),
});

export const backupCommand = defineCommand({
  name: "backup",
  json,
  summary: "back up the database and its files, even while the host is running",
  description:
    "Copy the database and its stored files, even while the host is running. Without a path the copy goes next to the " +
    "database, where the newest three are kept, and the newest of each of the last seven days.",
  arguments: [["[to]", "path of the copy; it is never removed automatically"]],
  examples: [
    ["lcm backup", "copy it next to the database"],
    ["lcm backup /mnt/usb/lcm-friday.db", "copy it elsewhere"],
  ],
  async run(session, _options, to?: string) {
    const made = await session.database.backup(to);
    if (session.json) return session.printJson(json, made);
    const files = made.files === 0 ? "" : ` and ${plural(made.files, "stored file")}`;
    session.print(`${made.path}: ${formatBytes(made.bytes)}${files}`);
    if (made.lost > 0)
      session.note(
        session.paint.caution(
          `without ${plural(made.lost, "stored file")} that the database itself has lost; \`lcm doctor\` lists what is missing`,
        ),
      );
    for (const old of made.pruned) session.note(session.paint.soft(`removed older backup: ${old}`));
  },
});
