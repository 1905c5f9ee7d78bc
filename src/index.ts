/** The public API of the library: store conversations without loss and build prompts from them. */

import type { Clock } from "./core/model/store.ts";
import { systemNow } from "./store/sqlite/store.ts";

export { createLcm } from "./core/lcm.ts";
export type { Lcm, LcmDeps } from "./core/lcm.ts";
export type { Assembly, AssemblyReport } from "./core/assembly/assemble.ts";
export type { CompactOutcome, CompactReport, CompactRequest } from "./core/compaction/compact.ts";
export type { Answer, AskProgress, AskRequest, Delegate, DelegateTool, Task } from "./core/recall/ask-types.ts";
export type { Described, DescribeRequest } from "./core/recall/describe.ts";
export type { Expansion, ExpandRequest } from "./core/recall/expand.ts";
export type { GrepRequest } from "./core/recall/grep.ts";
export type { Mapped, MapReport, MapRequest } from "./core/recall/map/map.ts";
export type { MapPlan } from "./core/recall/map/plan.ts";
export type { ThoroughAnswer, ThoroughPlan, ThoroughRequest } from "./core/recall/map/thorough.ts";
export type { Recent, RecentRequest } from "./core/recall/recent.ts";
export { reachOf } from "./core/recall/scope.ts";
export type { Reach, Reader } from "./core/recall/scope.ts";
export { LcmError } from "./core/base/errors.ts";
export { messageFromStore, messageToStore } from "./core/messages/codec.ts";
export { restoreMessage } from "./core/ingest/large-content.ts";
export { resolveSettings } from "./core/model/settings.ts";
export type { Settings } from "./core/model/settings.ts";
export { parseTimestamp } from "./core/base/time.ts";
export type { Due } from "./core/compaction/due.ts";
export type { Json, JsonObject } from "./core/base/json.ts";
export type { Timestamp } from "./core/base/time.ts";
export type * from "./core/model/types.ts";
export type * from "./core/model/store.ts";
export { createModel } from "./models/provider-model.ts";
export { chooseEmbedder } from "./models/choose-embedder.ts";
export type { MadeVectors, MakeVectorsOptions } from "./core/recall/make-vectors.ts";
export { openSqlite } from "./store/sqlite/store.ts";
export { openSqliteWorker } from "./store/sqlite/worker.ts";
export { openStore } from "./store/open.ts";
export type { OpenStoreOptions } from "./store/open.ts";
export { adopt } from "./store/adopt/adopt.ts";
export type { Tool, ToolContext, ToolResult } from "./agent-tools/define.ts";
export { tools } from "./agent-tools/all.ts";

export const systemClock: Clock = { now: systemNow };
