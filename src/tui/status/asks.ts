/** What the status screen asks: the status of the database or a conversation, and a backup. */

import { LcmError, errorText } from "../../core/base/errors.ts";
import type { ProxyReport } from "../../core/model/proxy-report.ts";
import type { CompactionRecord, Conversation, ConversationId } from "../../core/model/types.ts";
import { readStatus, type Pressure } from "../../core/status.ts";
import { nameOf } from "../../format/conversations.ts";
import type { ConfiguredModel, Status } from "../../format/status.ts";
import type { Doing, Port } from "../../operator/port.ts";
import { formatBytes } from "../../core/base/format.ts";

export interface StatusReport {
  readonly status: Status;
  /** The fullest contexts. */
  readonly fullest: readonly (Pressure & { readonly name: string })[];
  readonly one: One | null;
  readonly proxies: readonly ProxyReport[];
}

export interface One {
  readonly conversation: Conversation;
  readonly due: Pressure;
  readonly compactions: readonly CompactionRecord[];
}

const compactionsMax = 12;
const fullestMax = 8;

export const statusAsks = {
  async backUp(_ask: object, { port }: Doing): Promise<string> {
    const { path, bytes } = await port.backUp();
    return `backed up to ${path} (${formatBytes(bytes)})`;
  },
  async status(
    { conversation: id }: { readonly conversation: ConversationId | null },
    { port }: Doing,
  ): Promise<StatusReport> {
    const lcm = await port.reading();
    const standing = await readStatus(lcm, compactionsMax);
    const share = ({ promptTokens, budget }: Pressure): number => promptTokens / Math.max(1, budget);
    const fullest = standing.pressures.toSorted((a, b) => share(b) - share(a)).slice(0, fullestMax);
    const named = fullest.map(async (each) => {
      const found = await lcm.store.conversation(each.conversation);
      return { ...each, name: found === null ? "" : nameOf(found) };
    });
    const conversation = id === null ? null : await lcm.store.conversation(id);
    if (id !== null && conversation === null) throw new LcmError("not_found", `conversation ${id} no longer exists`);
    const { proxies, ...surroundings } = await port.surroundings();
    return {
      status: { ...standing, ...surroundings, model: await modelOf(port) },
      proxies,
      fullest: await Promise.all(named),
      one: conversation && {
        conversation,
        due: { conversation: conversation.id, ...(await lcm.due(conversation.id)) },
        compactions: await lcm.store.compactions(conversation.id, compactionsMax),
      },
    };
  },
};

/** A broken model setting must not hide the rest of the status. */
const modelOf = async (port: Port): Promise<ConfiguredModel | null> =>
  await port.summariser().catch((error: unknown) => ({ name: null, problem: errorText(error) }));
