/** The companion in the real Codex. */

import { createCodex } from "./coding-agents.ts";
import { describeCompanion } from "./companion-scenarios.ts";

describeCompanion("Codex", createCodex);
