/**
 * Adds the commands of `lcm` to the host's program as `openclaw lcm …`. The host has its own copy of commander, so objects
 * that come from it are recognised by what they can do, never by their class.
 */

import type { Command } from "commander";
import { addCommands, reportUsage } from "../../cli/commands/index.ts";
import { assert } from "../../core/base/errors.ts";

export async function mount(program: unknown, { config }: { readonly config: unknown }): Promise<void> {
  assert(isProgram(program), "the host's command line is a commander program");
  const { createContext, survivePipes } = await import("../../cli/context.ts");
  survivePipes();
  const context = createContext({ config, finish: (status) => (process.exitCode = status) });
  const json = process.argv.includes("--json");
  const group = program
    .command("lcm")
    .description("Lossless context management: every message is stored once and can always be recalled.")
    // The host's options come before a command; ours may also come after it.
    .enablePositionalOptions(false)
    .exitOverride((error) => {
      // `openclaw lcm` alone prints the help, as the host's own groups do.
      if (error.exitCode === 0 || error.code === "commander.help") throw Object.assign(error, { exitCode: 0 });
      // If thrown, the host would report it again and exit with its own status.
      process.exit(reportUsage(context, json, error.message));
    });
  addCommands(group, context, json);
}

const isProgram = (value: unknown): value is Command =>
  typeof value === "object" && value !== null && "command" in value && typeof value.command === "function";
