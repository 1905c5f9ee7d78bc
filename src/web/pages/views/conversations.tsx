/** The conversations: what there is, how active, how full, how healthy; families unfold into their segments. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { formatCount, plural } from "../../../core/base/format.ts";
import { dayMs, msToTimestamp, type Timestamp } from "../../../core/base/time.ts";
import type { ConversationId } from "../../../core/model/types.ts";
import type { Conversations, ConversationRow } from "../../contract.ts";
import { finish, read, useRead, write } from "../api.ts";
import { useKeys } from "../keys.ts";
import { activityCounts, busiestDay, Sparkline } from "../parts/plot.tsx";
import { Ago, Button, Empty, Field, Head, Heading, Select, Shown, useStill } from "../parts/ui.tsx";
import { addressOf, go, replace, withSettings } from "../router.ts";
import { nowOf, useAround } from "../session.ts";
import { percent, short, span } from "../words.ts";

const perPage = 100;

export function ConversationsView() {
  const around = useAround();
  const { place } = around;
  const [words, setWords] = useState(place.settings["find"] ?? "");
  const [limit, setLimit] = useState(perPage);
  const isHidden = place.settings["hidden"] === "true";
  const order = place.settings["order"] ?? "";
  const find = useStill(words, 120);
  useEffect(() => replace(withSettings(place, { find })), [find]);
  const asked = useRead(
    "conversations",
    { limit, ...(find === "" ? {} : { find }), ...(isHidden ? { hidden: true } : {}) },
    { keeps: true },
  );
  return (
    <>
      <Heading title="Conversations">Conversations</Heading>
      <form
        role="search"
        class="tools"
        onSubmit={(event) => {
          event.preventDefault();
          document.querySelector<HTMLElement>(".conversation-name")?.focus();
        }}
      >
        <Field
          id="filter"
          size="grow"
          label="Filter by name, agent, key, id or folder"
          value={words}
          onInput={setWords}
        />
        <Select
          label="Order"
          options={orders}
          value={order}
          onChange={(next) => go(withSettings(place, { find, order: next }))}
        />
        <label class="check">
          <input
            type="checkbox"
            checked={isHidden}
            onChange={() => go(withSettings(place, { find, hidden: !isHidden }))}
          />
          Show hidden ones
        </label>
      </form>
      <Shown asked={asked} what="conversations">
        {(found) => (
          <Rows found={found} order={order} isFiltered={find !== ""} onMore={() => setLimit(limit + perPage)} />
        )}
      </Shown>
    </>
  );
}

const orders = [
  ["", "newest activity first"],
  ["growth", "grew most in 7 days"],
  ["messages", "most messages"],
  ["context", "fullest context"],
] as const;

interface RowsProps {
  readonly found: Conversations;
  readonly order: string;
  readonly isFiltered: boolean;
  readonly onMore: () => void;
}

function Rows({ found: { rows, count }, order, isFiltered, onMore }: RowsProps) {
  const [selected, setSelected] = useState(-1);
  const move = (by: number): void => {
    const next = Math.max(0, Math.min(rows.length - 1, selected + by));
    setSelected(next);
    document.querySelectorAll<HTMLElement>(".conversation-name")[next]?.focus();
  };
  useKeys("Conversations", [
    { keys: ["j", "ArrowDown"], does: "next conversation", run: () => move(1) },
    { keys: ["k", "ArrowUp"], does: "previous conversation", run: () => move(-1) },
    { keys: ["f"], does: "filter", run: () => document.getElementById("filter")?.focus() },
  ]);
  if (rows.length === 0)
    return isFiltered ? (
      <Empty title="No matching conversations.">
        Every word of the filter must be in a name, agent, key, id or folder.
      </Empty>
    ) : (
      <Empty title="No conversations yet.">They appear here as soon as an agent stores its first message.</Empty>
    );
  return (
    <>
      <p class="soft" role="status">
        {rows.length < count
          ? `${formatCount(rows.length)} of ${plural(count, "conversation")}: those with the newest activity`
          : plural(count, "conversation")}
      </p>
      <RowTable rows={rows} order={order} label="Conversations" />
      {rows.length < count && <Button onClick={onMore}>Show more</Button>}
    </>
  );
}

function RowTable({
  rows,
  order = "",
  label,
  isInner = false,
}: {
  readonly order?: string;
  readonly rows: readonly ConversationRow[];
  readonly label: string;
  readonly isInner?: boolean;
}) {
  const key = rows.map(({ conversation: { id } }) => id).join();
  const activity = useActivity(key);
  const weigh = ({ conversation: { id, totals }, promptTokens, budget }: ConversationRow): number =>
    order === "growth"
      ? (activity.get(id)?.recent ?? 0)
      : order === "messages"
        ? totals.messages
        : order === "context"
          ? promptTokens / Math.max(1, budget)
          : 0;
  return (
    <table class="conversations" aria-label={label}>
      <Head
        columns={["conversation", "activity", "messages #", "in 7 days #", "context", "health", "newest"]}
        isHidden={isInner}
      />
      <tbody>
        {rows
          .toSorted((a, b) => weigh(b) - weigh(a))
          .map((row) => (
            <Row key={row.conversation.id} row={row} activity={activity.get(row.conversation.id)} isInner={isInner} />
          ))}
      </tbody>
    </table>
  );
}

const sparkCells = 40;
const perRequest = 100;

interface Active {
  readonly from: Timestamp;
  readonly counts: readonly number[];
  /** How many messages came in the last 7 days. */
  readonly recent: number;
  readonly busiest: string;
}

function useActivity(key: string): ReadonlyMap<ConversationId, Active> {
  const around = useAround();
  const [all, setAll] = useState<ReadonlyMap<ConversationId, Active>>(new Map());
  useEffect(() => {
    const abort = new AbortController();
    const ids = key === "" ? [] : key.split(",").map((id) => Number(id) as ConversationId);
    void (async () => {
      for (let from = 0; from < ids.length; from += perRequest) {
        const conversations = ids.slice(from, from + perRequest);
        const since = msToTimestamp(nowOf(around) - 7 * dayMs);
        const found = await read("activity", { conversations, marks: 200, since }, abort.signal);
        const active = found.map(({ conversation, pace, recent }): readonly [ConversationId, Active] => [
          conversation,
          {
            from: msToTimestamp(pace[0]?.[1] ?? 0),
            counts: activityCounts(pace, sparkCells),
            recent: recent ?? 0,
            busiest: busiestDay(pace),
          },
        ]);
        setAll((known) => new Map([...known, ...active]));
      }
    })().catch(() => undefined);
    return () => abort.abort();
  }, [key]);
  return all;
}

interface RowProps {
  readonly row: ConversationRow;
  readonly activity: Active | undefined;
  readonly isInner: boolean;
}

function Row({ row, activity, isInner }: RowProps) {
  const around = useAround();
  const [isOpen, setOpen] = useState(false);
  const { conversation, name, segments } = row;
  const { id, agentId, folder, totals, lastMessageAt, active, hidden } = conversation;
  const details = [
    agentId === null ? "" : `agent ${agentId}`,
    conversation.sessionKey ?? conversation.sessionId,
    folder ?? "",
  ];
  return (
    <>
      <tr>
        <td>
          <a class="conversation-name" href={addressOf("timeline", id)}>
            {name}
          </a>{" "}
          <span class="soft">#{id}</span> {!active && <span class="badge">earlier segment</span>}
          {hidden && <span class="badge">hidden</span>}
          <div class="soft small clip">{details.filter((word) => word !== "" && word !== name).join(" · ")}</div>
          {segments > 1 && !isInner && (
            <Button class="quiet small" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
              {isOpen ? "▾" : "▸"} {plural(segments, "segment")} of this session
            </Button>
          )}
        </td>
        <td>
          {activity !== undefined && (
            <Sparkline counts={activity.counts} label={`activity of ${name}: ${activity.busiest}`} />
          )}
          {activity !== undefined && lastMessageAt !== null && (
            <div class="soft small nowrap">{span(activity.from, lastMessageAt)}</div>
          )}
        </td>
        <td class="number">
          {formatCount(totals.messages)}
          <div class="soft small">{short(totals.messageTokens)} tokens</div>
        </td>
        <td class="number">
          {activity !== undefined && activity.recent > 0 && `+${formatCount(activity.recent)}`}
          {activity !== undefined && activity.recent > 0 && <span class="phone-only soft small"> in 7 days</span>}
        </td>
        <td>
          <Use row={row} />
        </td>
        <td>
          <HealthMark row={row} />
        </td>
        <td class="nowrap">{lastMessageAt === null ? "–" : <Ago at={lastMessageAt} now={nowOf(around)} />}</td>
      </tr>
      {isOpen && (
        <tr class="inner">
          <td colSpan={7}>
            <Segments of={id} name={name} />
          </td>
        </tr>
      )}
    </>
  );
}

function Segments({ of, name }: { readonly of: ConversationId; readonly name: string }) {
  const asked = useRead("conversations", { familyOf: of, hidden: true });
  return (
    <Shown asked={asked} what="segments">
      {({ rows }) => <RowTable rows={rows} label={`Segments of ${name}`} isInner />}
    </Shown>
  );
}

/** How full the context is, with the threshold at which a sweep is due. */
function Use({ row: { promptTokens, budget, thresholdTokens } }: Pick<RowProps, "row">) {
  const share = promptTokens / Math.max(1, budget);
  const isOver = promptTokens > thresholdTokens;
  const words = `${short(promptTokens)} of ${short(budget)}, ${percent(share)}`;
  return (
    <div
      class="use"
      title={isOver ? "Above the threshold, so a compaction is due." : "Tokens, of the budget of a prompt"}
    >
      <meter
        min={0}
        max={1}
        high={thresholdTokens / Math.max(1, budget)}
        value={Math.min(1, share)}
        aria-label={`context in tokens: ${words}`}
      />
      <div class="soft small">{isOver ? `${words}, compaction due` : words}</div>
    </div>
  );
}

// ── Health ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Checking reads the whole conversation: short ones are checked when they are seen, long ones when asked. */
const quickMessages = 2_000;
const checked = new Map<string, number>();
let queue: Promise<unknown> = Promise.resolve();

function HealthMark({ row: { conversation, name, stalled } }: Pick<RowProps, "row">) {
  const { id, revision, totals } = conversation;
  const key = `${id} ${revision}`;
  const [count, setCount] = useState<number | null>(checked.get(key) ?? null);
  const [isBusy, setBusy] = useState(false);
  const check = useMemo(
    () => async (): Promise<void> => {
      setBusy(true);
      const result = await finish(await write("health", { conversation: id }), () => undefined);
      if (result.kind !== "health") return;
      checked.set(key, result.health.count);
      setCount(result.health.count);
    },
    [key],
  );
  const start = (): void => {
    queue = queue.then(check).catch(() => setBusy(false));
  };
  useEffect(() => {
    setCount(checked.get(key) ?? null);
    if (!checked.has(key) && totals.messages <= quickMessages) start();
  }, [key]);
  if (stalled !== null)
    return (
      <a href={addressOf("health", id)} class="badge bad" title={stalled}>
        ! compaction failed<span class="visually-hidden">, {name}</span>
      </a>
    );
  if (count === null)
    return (
      <Button
        class="quiet small"
        disabled={isBusy}
        onClick={start}
        aria-label={`${isBusy ? "checking …" : "check"} conversation ${id}`}
      >
        {isBusy ? "checking …" : "check"}
      </Button>
    );
  return (
    <a
      href={addressOf("health", id)}
      class={count === 0 ? "badge good" : "badge caution"}
      title="Of what is stored, whether it is whole and right. How full the context is, is another question."
    >
      {count === 0 ? "✓ data healthy" : `! ${plural(count, "finding")}`}
      <span class="visually-hidden">, {name}</span>
    </a>
  );
}
