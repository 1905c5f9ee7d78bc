/** How commands name the model that writes summaries. */

import type { Command } from "commander";

export const addProviderOptions = (command: Command): Command =>
  command
    .option("--provider <name>", "whose model it is, if --model does not say it")
    .option("--base-url <url>", "where the provider is asked, if not where it usually is");
