/**
 * What folding does to a provider's prompt cache: a session of many turns with pauses, straight to a scripted provider,
 * through a proxy that folds as soon as a fold is due, and through one that waits for a pause. `node bench/proxy-cache.ts
 * [tokens of the budget] [turns] [turns between pauses]`
 */

import { agentOn, startProxyGround } from "../test/support/proxy-ground.ts";
import { ScriptedAgent } from "../test/support/scripted-agent.ts";

const [tokensMax = 60_000, turns = 160, betweenPauses = 25] = process.argv.slice(2).map(Number);
const settings = { freshTailCount: 32, leafChunkTokens: 20_000, leafTargetTokens: 1_200 };
const percent = (part: number, all: number): string => `${((100 * part) / all).toFixed(1)} %`.padStart(8);

process.stdout.write("                          sent   kept of it  read from the cache  largest request\n");
for (const [name, idleMs] of [
  ["without us", null],
  ["folds as soon as due", 0],
  ["folds when idle", 1e9],
] as const) {
  const ground = await startProxyGround({ tokensMax, settings, ...(idleMs === null ? {} : { idleMs }) });
  const { provider, service } = ground;
  const agent =
    idleMs === null
      ? new ScriptedAgent({ base: () => provider.url, wire: "anthropic", sessionId: "s1" })
      : agentOn(ground, "anthropic", "s1");
  for (let turn = 1; turn <= turns; turn++) {
    await agent.prompt(`turn ${turn}: BIG 350 ${turn % 3 === 0 ? `CALL read {"turn":${turn}}` : ""}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
    await ground.settled();
    if (turn % betweenPauses !== 0) continue;
    provider.forget();
    service.end();
    await ground.settled();
  }
  const [status] = service.status().sessions;
  const sum = (of: (request: (typeof provider.requests)[number]) => number): number =>
    provider.requests.reduce((all, request) => all + of(request), 0);
  const sent = sum(({ total }) => total);
  const kept = status === undefined ? "" : percent(status.bytesKept, status.bytesSent);
  process.stdout.write(
    `${name.padEnd(22)} ${(sent / 1e6).toFixed(1).padStart(5)} MB ${kept.padStart(10)} ${percent(
      sum(({ cached }) => cached),
      sent,
    ).padStart(20)} ${String(Math.max(...provider.requests.map(({ tokens }) => tokens))).padStart(10)} tokens\n`,
  );
  await ground.close();
}
