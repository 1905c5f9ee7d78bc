/** Takes a sample of memory and disk every few seconds, and prints a line every minute. */

import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Gateway } from "../gateway.ts";
import type { Ground } from "./ground.ts";
import type { Ledger } from "./ledger.ts";
import type { Sample } from "./report.ts";
import type { Weather } from "./weather.ts";

/** A host, as far as its figures go. */
export interface Watched {
  readonly name: string;
  readonly weather: Weather;
  readonly turns: () => number;
  forget(): void;
}

const sampleMs = 5_000;

export const say = (line: string): void => void process.stdout.write(`soak: ${line}\n`);

export async function watch(
  given: {
    readonly gateway: Gateway;
    readonly ground: Ground;
    readonly ledger: Ledger;
    readonly hosts: readonly Watched[];
  },
  samples: Sample[],
  over: AbortSignal,
): Promise<void> {
  const { gateway, ground, ledger, hosts } = given;
  let nextLine = 60;
  while (!over.aborted) {
    await sleep(sampleMs);
    for (const host of hosts) host.forget();
    const pid = gateway.pid();
    const last: Sample = {
      second: ledger.second(),
      pid,
      rssMb: pid === null ? null : rssMbOf(pid),
      ...(await ground.sizes()),
    };
    samples.push(last);
    if (ledger.second() < nextLine) continue;
    nextLine += 60;
    say(
      [
        `${Math.round(ledger.second() / 60)} min`,
        ...hosts.map(({ name, turns, weather }) => `${name} ${turns()} turns, ${weather.requestTokens.length} prompts`),
        `${hosts.reduce((sum, { weather }) => sum + weather.completions(), 0)} summaries asked for`,
        `${ledger.counts.get("quiet point") ?? 0} quiet points`,
        `gateway ${Math.round(last.rssMb ?? 0)} MB, database ${last.databaseMb.toFixed(1)} MB, wal ${last.walMb.toFixed(1)} MB`,
        `${ledger.faults.length} broken`,
      ].join("; "),
    );
  }
}

/** Memory of the largest process in the gateway's group: it is started by a smaller one. Null if all have just ended. */
function rssMbOf(group: number): number | null {
  const sizes = readdirSync("/proc").map((pid) => {
    try {
      const [, , , , ofGroup] = readFileSync(`/proc/${pid}/stat`, "utf8").split(" ");
      if (Number(ofGroup) !== group) return 0;
      return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;
    } catch {
      return 0; // No process, or one that has just ended.
    }
  });
  return Math.max(...sizes) || null;
}
