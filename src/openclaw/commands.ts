/** Stub: see the contract. */
import type { CommandContext } from "./host.ts";
import type { Runtime } from "./runtime.ts";

export async function runCommand(_runtime: Runtime, call: CommandContext): Promise<{ readonly text: string }> {
  return await Promise.resolve({ text: `lcm ${call.args ?? ""}` });
}
