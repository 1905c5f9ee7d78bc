/** What people type who know other programs, and our command for it. */

import { LcmError } from "../../core/base/errors.ts";

const meant: Readonly<Record<string, string>> = {
  archive: "prune",
  browse: "tui",
  check: "doctor",
  config: "settings",
  connect: "setup",
  cost: "stats",
  costs: "stats",
  delete: "forget` or `lcm prune",
  disconnect: "setup --remove",
  find: "grep",
  install: "setup",
  list: "conversations",
  ls: "conversations",
  migrate: "move",
  query: "ask",
  remove: "forget` or `lcm prune",
  revert: "undo",
  rm: "forget` or `lcm prune",
  search: "grep",
  sessions: "conversations",
  show: "describe",
  summarise: "compact",
  summarize: "compact",
  ui: "tui",
  uninstall: "setup --remove",
  usage: "stats",
  verify: "doctor",
  version: "--version",
};

/** Throws `invalid` with our command if it is one of these words. */
export function refuseOtherWord(name: string): void {
  if (!Object.hasOwn(meant, name)) return;
  throw new LcmError("invalid", `unknown command '${name}'`, {
    hint: `did you mean \`lcm ${meant[name]}\`? pass --help to see all commands`,
  });
}
