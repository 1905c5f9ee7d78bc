/** The library: everything an agent builder needs to keep a conversation without loss, and to make prompts of it. */

import type { Clock } from "./core/ports.ts";
import { systemNow } from "./store/sqlite.ts";

export { createLcm } from "./core/lcm.ts";
export type { Lcm, LcmDeps } from "./core/lcm.ts";
export type { Assembly, AssemblyReport } from "./core/assemble.ts";
export type { CompactOutcome, CompactReport, CompactRequest, Due } from "./core/compact.ts";
export type { Answer, AskProgress, AskRequest, Delegate, DelegateTool, Task } from "./core/question.ts";
export type { Described, DescribeRequest } from "./core/describe.ts";
export type { Expansion, ExpandRequest } from "./core/expand.ts";
export type { GrepRequest } from "./core/recall.ts";
export type { Recent, RecentRequest } from "./core/recent.ts";
export { reachOf } from "./core/scope.ts";
export type { Reach, Reader } from "./core/scope.ts";
export { LcmError } from "./core/errors.ts";
export { messageFromStore, messageToStore } from "./core/content.ts";
export { restoreMessage } from "./core/large-files.ts";
export { resolveSettings } from "./core/settings.ts";
export type { Settings } from "./core/settings.ts";
export { parseTimestamp } from "./core/text.ts";
export type * from "./core/model.ts";
export type * from "./core/ports.ts";
export { createModel } from "./llm/model.ts";
export { openSqlite } from "./store/sqlite.ts";
export { openSqliteWorker } from "./store/sqlite-worker.ts";
export { adopt } from "./store/adopt.ts";
export type { Tool, ToolContext, ToolResult } from "./tools/tool.ts";
export { tools } from "./tools/tools.ts";

/** The time as the machine has it. */
export const systemClock: Clock = { now: systemNow };
