/** `npm run demo`, for who has the sources and no `lcm` yet. */

import { main } from "../main.ts";

process.exitCode = await main(["demo"]);
