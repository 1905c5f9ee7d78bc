/** `npm run demo`: runs the demo from the sources. */

import { main } from "../main.ts";

process.exitCode = await main(["demo", ...process.argv.slice(2)]);
