/** `npm run soak:postgres [-- --minutes 10 --processes 16]`: the soak on a server of its own, and what it counted. */

import { parseArgs } from "node:util";
import { soak } from "./soak.ts";

const { values } = parseArgs({
  options: { minutes: { type: "string", default: "10" }, processes: { type: "string", default: "16" } },
});
const result = await soak({
  processes: Number(values.processes),
  seconds: Number(values.minutes) * 60,
  say: (line) => void process.stdout.write(`${line}\n`),
});
process.stdout.write(`${JSON.stringify(result, null, 2)}\n`);
