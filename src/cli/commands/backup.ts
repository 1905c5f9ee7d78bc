/** `lcm backup`: a whole copy, made while others write. */

import type { Command } from "commander";
import { formatBytes } from "../../core/text.ts";
import { plural } from "../../show/render.ts";
import { exitOk } from "./session.ts";
import type { CommandDefinition, Session } from "./session.ts";

export const backupCommand: CommandDefinition = {
  name: "backup",
  summary: "copy the database and its files, also while the host is running",
  description:
    "Copy the database and its stored files, also while the host is running. Without a path the copy is put beside the " +
    "database, where the newest three are kept.",
  options: (command) => command.argument("[to]", "where to; such a copy is never removed"),
  examples: [
    ["lcm backup", "beside the database"],
    ["lcm backup /mnt/usb/lcm-friday.db", "to a place of your own"],
  ],
  run: backUp,
};

async function backUp(session: Session, _command: Command, to?: string): Promise<number> {
  const made = await session.database.backup(to);
  if (session.json) {
    session.printJson(made);
    return exitOk;
  }
  const files = made.files === 0 ? "" : ` and ${plural(made.files, "stored file")}`;
  session.print(`${made.path}: ${formatBytes(made.bytes)}${files}`);
  for (const old of made.pruned) session.note(session.paint.soft(`removed the older backup ${old}`));
  return exitOk;
}
