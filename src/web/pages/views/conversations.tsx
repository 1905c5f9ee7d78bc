/** The conversations: what there is, how active, how full, how healthy; families unfold into their segments. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { formatCount, plural } from "../../../core/base/format.ts";
import type { ConversationId } from "../../../core/model/types.ts";
import type { Conversations, ConversationRow } from "../../contract.ts";
import { finish, read, useRead, write } from "../api.ts";
import { useKeys } from "../keys.ts";
import { activityCounts, Sparkline } from "../parts/plot.tsx";
import { Ago, Empty, Field, Heading, Shown, useStill } from "../parts/ui.tsx";
import { addressOf, go, replace, withSettings } from "../router.ts";
import { nowOf, useAround } from "../session.ts";
import { percent, short } from "../words.ts";

const perPage = 100;

export function ConversationsView() {
  const around = useAround();
  const { place } = around;
  const [words, setWords] = useState(place.settings["find"] ?? "");
  const [limit, setLimit] = useState(perPage);
  const isHidden = place.settings["hidden"] === "true";
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
      <div class="tools">
        <Field
          id="filter"
          size="grow"
          label="Filter by name, agent, key, id or folder"
          value={words}
          onInput={setWords}
        />
        <label class="check">
          <input
            type="checkbox"
            checked={isHidden}
            onChange={() => go(withSettings(place, { find, hidden: !isHidden }))}
          />
          Show hidden ones
        </label>
      </div>
      <Shown asked={asked} what="conversations">
        {(found) => <Rows found={found} isFiltered={find !== ""} onMore={() => setLimit(limit + perPage)} />}
      </Shown>
    </>
  );
}

interface RowsProps {
  readonly found: Conversations;
  readonly isFiltered: boolean;
  readonly onMore: () => void;
}

function Rows({ found: { rows, count }, isFiltered, onMore }: RowsProps) {
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
          ? `${formatCount(rows.length)} of ${plural(count, "conversation")}`
          : plural(count, "conversation")}
        , the newest activity first
      </p>
      <RowTable rows={rows} label="Conversations" />
      {rows.length < count && (
        <button type="button" onClick={onMore}>
          Show more
        </button>
      )}
    </>
  );
}

function RowTable({
  rows,
  label,
  isInner = false,
}: {
  readonly rows: readonly ConversationRow[];
  readonly label: string;
  readonly isInner?: boolean;
}) {
  const key = rows.map(({ conversation: { id } }) => id).join();
  const activity = useActivity(key);
  return (
    <table class="conversations" aria-label={label}>
      <thead class={isInner ? "visually-hidden" : ""}>
        <tr>
          <th scope="col">conversation</th>
          <th scope="col">activity</th>
          <th scope="col" class="number">
            messages
          </th>
          <th scope="col">context</th>
          <th scope="col">health</th>
          <th scope="col">newest</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <Row key={row.conversation.id} row={row} counts={activity.get(row.conversation.id)} isInner={isInner} />
        ))}
      </tbody>
    </table>
  );
}

const sparkCells = 40;
const perRequest = 100;

function useActivity(key: string): ReadonlyMap<ConversationId, readonly number[]> {
  const [counts, setCounts] = useState<ReadonlyMap<ConversationId, readonly number[]>>(new Map());
  useEffect(() => {
    const abort = new AbortController();
    const ids = key === "" ? [] : key.split(",").map((id) => Number(id) as ConversationId);
    void (async () => {
      for (let from = 0; from < ids.length; from += perRequest) {
        const conversations = ids.slice(from, from + perRequest);
        const found = await read("activity", { conversations, marks: 200 }, abort.signal);
        setCounts(
          (known) =>
            new Map([
              ...known,
              ...found.map(({ conversation, pace }) => [conversation, activityCounts(pace, sparkCells)] as const),
            ]),
        );
      }
    })().catch(() => undefined);
    return () => abort.abort();
  }, [key]);
  return counts;
}

interface RowProps {
  readonly row: ConversationRow;
  readonly counts: readonly number[] | undefined;
  readonly isInner: boolean;
}

function Row({ row, counts, isInner }: RowProps) {
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
            <button type="button" class="quiet small" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
              {isOpen ? "▾" : "▸"} {plural(segments, "segment")} of this session
            </button>
          )}
        </td>
        <td>{counts !== undefined && <Sparkline counts={counts} label={`activity of ${name}`} />}</td>
        <td class="number">
          {formatCount(totals.messages)}
          <div class="soft small">{short(totals.messageTokens)} tokens</div>
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
          <td colSpan={6}>
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
  const words = `${short(promptTokens)} tokens, ${percent(share)} of ${short(budget)}`;
  return (
    <div class="use" title={isOver ? `${words}: above the threshold, so a compaction is due` : words}>
      <meter
        min={0}
        max={1}
        high={thresholdTokens / Math.max(1, budget)}
        value={Math.min(1, share)}
        aria-label={`context: ${words}`}
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

function HealthMark({ row: { conversation, stalled } }: Pick<RowProps, "row">) {
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
        ! compaction failed
      </a>
    );
  if (count === null)
    return (
      <button
        type="button"
        class="quiet small"
        disabled={isBusy}
        onClick={start}
        aria-label={`${isBusy ? "checking …" : "check"} conversation ${id}`}
      >
        {isBusy ? "checking …" : "check"}
      </button>
    );
  return (
    <a href={addressOf("health", id)} class={count === 0 ? "badge good" : "badge caution"}>
      {count === 0 ? "✓ healthy" : `! ${plural(count, "finding")}`}
    </a>
  );
}
