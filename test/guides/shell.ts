/**
 * Runs the pages' commands one after the other in one process, as `lcm` would run each in its own. Messages name the
 * command; the answer is the exit status and all output, in the order of writing.
 */

import { main } from "../../src/cli/main.ts";
import { homeAt } from "../support/platform.ts";
import { beginIds, seedVariable } from "./still.ts";

export interface Order {
  readonly args: readonly string[];
  readonly home: string;
  readonly env: Readonly<Record<string, string>>;
}

export interface Answer {
  readonly status: number;
  readonly said: string;
}

const bare = { ...process.env };
const written: string[] = [];
for (const stream of [process.stdout, process.stderr]) {
  stream.setMaxListeners(0);
  stream.write = (text: string | Uint8Array): boolean => {
    written.push(String(text));
    return true;
  };
}

process.on("message", ({ args, home, env }: Order) => {
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, bare, homeAt(home), { TMPDIR: home, [seedVariable]: args.join(" ") }, env);
  process.chdir(home);
  beginIds();
  void main(args).then((status) => {
    const answer: Answer = { status, said: written.splice(0).join("") };
    process.send?.(answer);
  });
});
