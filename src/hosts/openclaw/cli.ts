/**
 * `openclaw lcm …`: the commands of `lcm` as a group of the host's own program. That program is of the host's copy of
 * commander and of the host's own making, so what comes from there is known by what it does, never by its class.
 */

import type { Command } from "commander";
import { addCommands, reportUsage } from "../../cli/commands/index.ts";
import { assert } from "../../core/base/errors.ts";

export async function mount(
  program: unknown,
  { config }: { readonly config: Readonly<Record<string, unknown>> },
): Promise<void> {
  assert(isProgram(program), "the host's command line is a commander program");
  const { createContext, survivePipes } = await import("../../cli/context.ts");
  survivePipes();
  const context = createContext({ config, finish: (status) => (process.exitCode = status) });
  const json = process.argv.includes("--json");
  const group = program
    .command("lcm")
    .description("Lossless context management: every message stored once, always one step from being recalled.")
    // The host's options stand before a command; ours may stand behind it as well.
    .enablePositionalOptions(false)
    .exitOverride((error) => {
      // The name alone shows what there is, as the host's own groups do.
      if (error.exitCode === 0 || error.code === "commander.help") throw Object.assign(error, { exitCode: 0 });
      // Thrown on, it would be told a second time in the host's words, and end with the host's status.
      process.exit(reportUsage(context, json, error.message));
    });
  addCommands(group, context, json);
}

const isProgram = (value: unknown): value is Command =>
  typeof value === "object" && value !== null && "command" in value && typeof value.command === "function";
