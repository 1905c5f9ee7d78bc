/** The tools that an agent of a host may call. Only delegates use the others. */

import { tools } from "../../agent-tools/all.ts";

export const offeredTools = tools.filter(({ audience }) => audience !== "delegate");
