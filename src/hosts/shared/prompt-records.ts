/**
 * Records prompts behind the turns that they are for. Call these only once it is certain what is sent: a turn may have
 * stopped waiting for a prompt that is built all the same.
 */

import type { Assembly } from "../../core/assembly/assemble.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { ConversationId } from "../../core/model/types.ts";
import type { Sent } from "../../core/seen/record.ts";
import type { Runtime } from "./runtime.ts";

interface Recorded {
  readonly conversation: ConversationId;
  readonly number: number;
}

/** Null if the prompt is not recorded: the settings say so, or it could not be written. */
export type Recording = Promise<Recorded | null>;

export const notRecorded: Recording = Promise.resolve(null);

export async function recordOurs(runtime: Runtime, session: string, assembly: Assembly, sent: Sent): Recording {
  const at = runtime.clock.now();
  return await runtime.recordSoon(session, async (lcm) =>
    recorded(assembly.made.conversation, await lcm.recordPrompt(assembly, { at, ...sent })),
  );
}

export interface HostsPrompt {
  /** The conversation; null if nothing of the session is stored. */
  readonly find: (lcm: Lcm) => Promise<{ readonly id: ConversationId } | null>;
  /** Why our prompt was not sent, in words that quote nothing. */
  readonly why: string;
  readonly model?: string | null;
}

export async function recordHosts(runtime: Runtime, session: string, prompt: HostsPrompt): Recording {
  const { find, why, model = null } = prompt;
  const at = runtime.clock.now();
  return await runtime.recordSoon(session, async (lcm) => {
    const id = (await find(lcm))?.id;
    return id === undefined ? null : recorded(id, await lcm.recordHostsPrompt(id, why, { at, model }));
  });
}

export function recordEnd(
  runtime: Runtime,
  session: string,
  recording: Recording,
  end: Parameters<Lcm["endPrompt"]>[1],
): void {
  void runtime.recordSoon(session, async (lcm) => {
    const prompt = await recording;
    if (prompt !== null) await lcm.endPrompt(prompt, end);
  });
}

const recorded = (conversation: ConversationId, number: number | null): Recorded | null =>
  number === null ? null : { conversation, number };

export const whyHosts = {
  behind: "messages were missing from the store",
  late: "our prompt could not be built in time",
  unfit: "not even the newest message fits",
  unused: "our prompt did not have the running turn",
} as const;
