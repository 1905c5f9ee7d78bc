/**
 * What a tool is: a name, words for the model, a schema, and what it does. A tool is data, defined once and offered by
 * every surface. Here stands what holds for all of them: who may call it, that its arguments are checked, and that a
 * world that refuses is an answer with a hint and no exception.
 */

import type { AskProgress, Delegate, Read } from "../core/recall/ask-types.ts";
import { LcmError } from "../core/base/errors.ts";
import type { Lcm } from "../core/lcm.ts";
import type { GrantId } from "../core/model/types.ts";
import type { Model } from "../core/model/store.ts";
import type { Asked, Reach, Reader } from "../core/recall/scope.ts";
import { checkArguments } from "./arguments.ts";
import type { ArgumentsOf, Parameters } from "./arguments.ts";
import type { JsonObject } from "../core/base/json.ts";

export interface ToolContext {
  readonly lcm: Lcm;
  readonly reader: Reader;
  /** Set for a delegate: it reads under this and nothing else. */
  readonly grant?: GrantId;
  /** The zone of times in the text; UTC if left out. */
  readonly zone?: string;
  readonly signal?: AbortSignal;
  /** Who answers lcm_expand_query instead of the model of `lcm`. */
  readonly delegate?: Delegate;
  /** The model that does, with its calls counted already; a delegate comes before it. */
  readonly model?: Model;
  readonly onProgress?: (progress: AskProgress) => void;
}

export interface ToolResult {
  /** For a model: our own lines begin at the margin, and stored text is quoted. */
  readonly text: string;
  /** The same for programs. */
  readonly details: JsonObject;
  readonly isError: boolean;
  /** What was handed out of the store, so what may be cited. */
  readonly read?: Read;
}

interface Described {
  readonly name: `lcm_${string}`;
  readonly label: string;
  readonly description: string;
  /** Arguments of the right shape. */
  readonly example: JsonObject;
  /** Who may be offered it: an agent, the delegate that answers its question, or both. */
  readonly audience: "agent" | "delegate" | "both";
}

export interface Tool extends Described {
  /** Plain JSON Schema. */
  readonly parameters: Parameters;
  /** Never throws for a bad argument or a world that refused: those are results. */
  run(args: unknown, context: ToolContext): Promise<ToolResult>;
}

interface Definition<P extends Parameters> extends Described {
  readonly parameters: P;
  run(args: ArgumentsOf<P>, context: ToolContext): Promise<Omit<ToolResult, "isError">>;
}

export function defineTool<const P extends Parameters>(definition: Definition<P>): Tool {
  return {
    ...definition,
    async run(given, context) {
      let isUnderstood = false;
      try {
        checkAudience(definition, context);
        const args = await checkArguments(definition.parameters, given);
        isUnderstood = true;
        return { ...(await definition.run(args, context)), isError: false };
      } catch (error) {
        if (!(error instanceof LcmError)) throw error;
        const { name, example } = definition;
        const isMeant = error.code === "invalid" && !isUnderstood;
        return refusal(name, error, isMeant ? [`For example: ${name} ${JSON.stringify(example)}`] : []);
      }
    },
  };
}

function checkAudience({ name, audience }: Described, { grant }: ToolContext): void {
  if (grant === undefined && audience === "delegate") {
    throw new LcmError("denied", `${name} reads under a grant, and there is none`, {
      hint: "ask lcm_expand_query: it makes one, reads and answers",
    });
  }
  if (grant !== undefined && audience === "agent") {
    throw new LcmError("denied", `${name} is not for a delegate`, { hint: "use lcm_expand or lcm_describe" });
  }
}

/** What a tool could not do, as its answer. */
export function refusal(name: string, { code, message, hint }: LcmError, advice: readonly string[] = []): ToolResult {
  const hints = hint === undefined ? [] : [`Hint: ${hint}.`];
  const error = { code, message, ...(hint === undefined ? {} : { hint }) };
  return { text: [`${name}: ${message}.`, ...hints, ...advice].join("\n"), details: { error }, isError: true };
}

/** The grant's reach, or the one conversation of it that was asked for. */
export function withinGrant(reach: Reach, { conversationId, allConversations }: Asked): Reach {
  if (allConversations === true) {
    throw new LcmError("denied", "a delegate reads only the conversations of its grant", {
      hint: "leave allConversations out",
    });
  }
  if (conversationId === undefined) return reach;
  const asked = reach.conversations?.filter((id) => id === conversationId) ?? [];
  if (asked.length > 0) return { ...reach, conversations: asked };
  throw new LcmError("not_found", `there is no conversation ${conversationId}`, { hint: "leave conversationId out" });
}
