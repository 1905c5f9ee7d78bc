/**
 * Defines what a tool is, and runs it: checks the caller and the arguments, and turns errors into results.
 * A tool is data, so every surface (host, MCP, library) offers the same ones.
 */

import type { AskProgress, Delegate, Read } from "../core/recall/ask-types.ts";
import { LcmError } from "../core/base/errors.ts";
import type { Lcm } from "../core/lcm.ts";
import type { GrantId } from "../core/model/types.ts";
import type { Model } from "../core/model/store.ts";
import type { ReachRequest, Reach, Reader } from "../core/recall/scope.ts";
import { checkArguments, type ArgumentsOf, type Parameters } from "./arguments.ts";
import type { JsonObject } from "../core/base/json.ts";

export interface ToolContext {
  readonly lcm: Lcm;
  readonly reader: Reader;
  /** Set for a delegate, which reads only under this grant. */
  readonly grant?: GrantId;
  /** Time zone of the text; UTC by default. */
  readonly zone?: string;
  readonly signal?: AbortSignal;
  /** Answers lcm_expand_query instead of the model of `lcm`. */
  readonly delegate?: Delegate;
  /** The same, as a model whose calls are already metered; `delegate` takes precedence. */
  readonly model?: Model;
  readonly onProgress?: (progress: AskProgress) => void;
}

export interface ToolResult {
  /** For a model: our own lines start at the margin, stored text is quoted. */
  readonly text: string;
  /** The same as data. */
  readonly details: JsonObject;
  readonly isError: boolean;
  /** Stored text that was returned, and may therefore be cited. */
  readonly read?: Read;
}

interface ToolFacts {
  readonly name: `lcm_${string}`;
  readonly label: string;
  readonly description: string;
  /** Valid arguments, shown in errors and docs. */
  readonly example: JsonObject;
  /** Who may call it: an agent, the delegate that answers its question, or both. */
  readonly audience: "agent" | "delegate" | "both";
  /** Whether it changes something stored. A session that is only allowed to read is not offered it. */
  readonly isWriting?: true;
}

export interface Tool extends ToolFacts {
  /** Plain JSON Schema. */
  readonly parameters: Parameters;
  /** Never throws an `LcmError`: bad arguments and refusals are results. */
  run(args: unknown, context: ToolContext): Promise<ToolResult>;
}

interface Definition<P extends Parameters> extends ToolFacts {
  readonly parameters: P;
  run(args: ArgumentsOf<P>, context: ToolContext): Promise<Omit<ToolResult, "isError">>;
}

export function defineTool<const P extends Parameters>(definition: Definition<P>): Tool {
  return {
    ...definition,
    async run(given, context) {
      let isChecked = false;
      try {
        checkAudience(definition, context);
        const args = await checkArguments(definition.parameters, given);
        isChecked = true;
        return { ...(await definition.run(args, context)), isError: false };
      } catch (error) {
        if (!(error instanceof LcmError)) throw error;
        const { name, example } = definition;
        const isMalformed = error.code === "invalid" && !isChecked;
        return refusal(name, error, isMalformed ? [`For example: ${name} ${JSON.stringify(example)}`] : []);
      }
    },
  };
}

function checkAudience({ name, audience }: ToolFacts, { grant }: ToolContext): void {
  if (grant === undefined && audience === "delegate") {
    throw new LcmError("denied", `${name} needs a grant, and there is none`, {
      hint: "call lcm_expand_query instead: it opens a grant, reads and answers",
    });
  }
  if (grant !== undefined && audience === "agent") {
    throw new LcmError("denied", `${name} is not available to a delegate`, {
      hint: "call lcm_grep, lcm_expand or lcm_describe",
    });
  }
}

/** An error as the result of a tool. */
export function refusal(name: string, { code, message, hint }: LcmError, advice: readonly string[] = []): ToolResult {
  const hints = hint === undefined ? [] : [`Hint: ${hint}.`];
  const error = { code, message, ...(hint === undefined ? {} : { hint }) };
  return { text: [`${name}: ${message}.`, ...hints, ...advice].join("\n"), details: { error }, isError: true };
}

/** The grant's reach, narrowed to one of its conversations if the caller names it. */
export function withinGrant(reach: Reach, { conversationId, allConversations }: ReachRequest): Reach {
  if (allConversations === true) {
    throw new LcmError("denied", "a delegate can read only the conversations of its grant", {
      hint: "leave out allConversations",
    });
  }
  if (conversationId === undefined) return reach;
  const asked = reach.conversations?.filter((id) => id === conversationId) ?? [];
  if (asked.length > 0) return { ...reach, conversations: asked };
  throw new LcmError("not_found", `there is no conversation ${conversationId}`, { hint: "leave out conversationId" });
}
