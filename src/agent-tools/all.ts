/** Lists the tools for agents, most used first. */

import { describeTool } from "./describe.ts";
import { expandQueryTool } from "./expand-query.ts";
import { expandTool } from "./expand.ts";
import { grepTool } from "./grep.ts";
import { mapTool } from "./map.ts";
import { recentTool } from "./recent.ts";
import { pinTool } from "./pin.ts";
import type { Tool } from "./define.ts";

export const tools: readonly Tool[] = [
  grepTool,
  describeTool,
  expandQueryTool,
  recentTool,
  mapTool,
  expandTool,
  pinTool,
];
