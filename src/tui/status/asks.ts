/** What the status screen asks: how the database stands, and one conversation of it. */

import { LcmError, errorText } from "../../core/base/errors.ts";
import type { CompactionRecord, Conversation, ConversationId } from "../../core/model/types.ts";
import { readStatus } from "../../core/status.ts";
import type { Pressure } from "../../core/status.ts";
import { nameOf } from "../../format/conversations.ts";
import type { ConfiguredModel, Status } from "../../format/status.ts";
import type { Doing, Port } from "../port.ts";
import { formatBytes } from "../../core/base/format.ts";

export interface Told {
  readonly status: Status;
  /** The fullest contexts, and what they are called. */
  readonly fullest: readonly (Pressure & { readonly name: string })[];
  readonly one: One | null;
}

/** The conversation that was asked for. */
export interface One {
  readonly conversation: Conversation;
  readonly due: Pressure;
  readonly compactions: readonly CompactionRecord[];
}

const compactionsMax = 12;
const fullestMax = 8;

export const statusAsks = {
  /** In words: where it is. */
  async backUp(_ask: object, { port }: Doing): Promise<string> {
    const { path, bytes } = await port.backUp();
    return `a copy is in ${path} (${formatBytes(bytes)})`;
  },
  async status({ conversation: id }: { readonly conversation: ConversationId | null }, { port }: Doing): Promise<Told> {
    const lcm = await port.reading();
    const standing = await readStatus(lcm, compactionsMax);
    const share = ({ contextTokens, budget }: Pressure): number => contextTokens / Math.max(1, budget);
    const fullest = standing.pressures.toSorted((a, b) => share(b) - share(a)).slice(0, fullestMax);
    const named = fullest.map(async (each) => {
      const found = await lcm.store.conversation(each.conversation);
      return { ...each, name: found === null ? "" : nameOf(found) };
    });
    const conversation = id === null ? null : await lcm.store.conversation(id);
    if (id !== null && conversation === null)
      throw new LcmError("not_found", `there is no conversation ${id} any more`);
    return {
      status: { ...standing, ...(await port.surroundings()), model: await modelOf(port) },
      fullest: await Promise.all(named),
      one: conversation && {
        conversation,
        due: { conversation: conversation.id, ...(await lcm.due(conversation.id)) },
        compactions: await lcm.store.compactions(conversation.id, compactionsMax),
      },
    };
  },
};

/** A status is shown, whatever keeps the model from being found. */
const modelOf = async (port: Port): Promise<ConfiguredModel | null> =>
  await port.summariser().catch((error: unknown) => ({ name: null, problem: errorText(error) }));
