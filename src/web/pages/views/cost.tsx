/** Cost: how prompts grew, how much of each was in a cache, and what writing summaries took, as plots. */

import { useState } from "preact/hooks";
import { formatBytes, formatCount, plural } from "../../../core/base/format.ts";
import { dayMs, msToTimestamp, timestampToMs } from "../../../core/base/time.ts";
import type { PromptCost } from "../../../core/seen/stats.ts";
import { stretchesOf } from "../../../format/stats.ts";
import type { Stats } from "../../contract.ts";
import { useRead } from "../api.ts";
import { BarPlot, busiestDay, type Bar } from "../parts/plot.tsx";
import { Choice, Empty, Figures, Shown, Table, When } from "../parts/ui.tsx";
import { addressOf } from "../router.ts";
import { nowOf, useAround } from "../session.ts";
import { clock, percent, short } from "../words.ts";
import { conversationIdOf, OfConversation } from "./of-conversation.tsx";

const periods = [
  ["day", "last day", 1],
  ["week", "last week", 7],
  ["month", "last month", 30],
  ["all", "all", null],
] as const;

export function CostView() {
  const around = useAround();
  const conversation = conversationIdOf(around.place.of);
  const [period, setPeriod] = useState<(typeof periods)[number][0]>("all");
  const days = periods.find(([each]) => each === period)?.[2] ?? null;
  // To the minute, so that the question stays the same for a while.
  const [openedMs] = useState(nowOf(around));
  const asked = useRead(
    "stats",
    { conversation, ...(days === null ? {} : { since: msToTimestamp(openedMs - days * dayMs) }) },
    { keeps: true },
  );
  return (
    <OfConversation conversation={conversation} view="cost">
      <Choice
        label="Period"
        value={period}
        options={periods.map(([each, words]) => [each, words] as const)}
        onChange={setPeriod}
      />
      <Shown asked={asked} what="prompts and calls">
        {(stats) => <Plots stats={stats} of={conversation} />}
      </Shown>
    </OfConversation>
  );
}

const barsMax = 90;

function Plots({ stats: { stats, compactions, calls, pace }, of }: { readonly stats: Stats; readonly of: number }) {
  const stretches = stretchesOf(stats.prompts, barsMax);
  return (
    <>
      <Figures figures={figuresOf(stats)} />
      <p class="soft small">
        Sent again: bytes of the prompt before that could not be reused, because something ahead of them changed.{" "}
        {pace.length > 0 && `In all of the conversation: ${busiestDay(pace)}.`}
      </p>
      {stretches.length === 0 ? (
        <Empty title="No prompts were recorded in this period." />
      ) : (
        <>
          <BarPlot
            title="Tokens per prompt"
            bars={stretches.map((some) => barOf(some, of, tokensIn(some)))}
            format={short}
          >
            <p class="soft small">
              A mark below a bar: a fold, an eviction or a rewrite changed a prompt before its end.
            </p>
          </BarPlot>
          <BarPlot
            title="Same bytes as the prompt before"
            bars={stretches.map((some) => barOf(some, of, sharedIn(some)))}
            format={percent}
            most={1}
            marked="changed before its end"
          >
            <p class="soft small">What a provider can read from its cache.</p>
          </BarPlot>
          {stats.counted > 0 && (
            <BarPlot
              title="Read from the provider’s cache"
              bars={stretches.map((some) => barOf(some, of, cachedIn(some)))}
              format={percent}
              most={1}
            />
          )}
        </>
      )}
      <Folds prompts={stats.prompts} of={of} />
      <BarPlot title="Growth, in messages" bars={growthOf(pace)} format={formatCount} />
      {calls.length > 0 && (
        <BarPlot title="Tokens for writing summaries" bars={stretchesOf(calls, barsMax).map(callsBar)} format={short} />
      )}
      <Compactions rows={compactions} />
    </>
  );
}

function figuresOf(stats: Stats["stats"]): readonly (readonly [string, string])[] {
  const { prompts, bytes, shared, changes, lost, counted, cached, calls, inputTokens, outputTokens } = stats;
  return [
    ["prompts", formatCount(prompts.length)],
    ["same bytes as before", bytes === 0 ? "–" : percent(shared / bytes)],
    ["sent again", changes === 0 ? "–" : `${formatBytes(lost)} in ${plural(changes, "prompt")}`],
    ["read from cache", counted === 0 ? "not told" : percent(cached / counted)],
    ["calls for summaries", formatCount(calls)],
    ["their tokens", `${short(inputTokens)} in, ${short(outputTokens)} out`],
  ];
}

const sum = (numbers: readonly (number | null)[]): number =>
  numbers.reduce<number>((total, each) => total + (each ?? 0), 0);

function barOf(some: readonly PromptCost[], of: number, value: number | null): Bar {
  const [first, last] = [some[0], some.at(-1)];
  const numbers = first?.number === last?.number ? `#${first?.number}` : `#${first?.number}–${last?.number}`;
  return {
    label: first === undefined ? numbers : `${numbers}, ${clock(first.at)}`,
    value,
    mark: some.some(({ isChanged }) => isChanged),
    // To the prompt that changed, if one did.
    href: addressOf("seen", of, { prompt: (some.find(({ isChanged }) => isChanged) ?? last)?.number }),
  };
}

function tokensIn(some: readonly PromptCost[]): number | null {
  const ours = some.filter(({ hosts }) => hosts === null);
  return ours.length === 0 ? null : sum(ours.map(({ tokens }) => tokens)) / ours.length;
}

function sharedIn(some: readonly PromptCost[]): number | null {
  const compared = some.filter(({ shared }) => shared !== null);
  const bytes = sum(compared.map((prompt) => prompt.bytes));
  return bytes === 0 ? null : sum(compared.map(({ shared }) => shared)) / bytes;
}

function cachedIn(some: readonly PromptCost[]): number | null {
  const told = some.filter(({ counted, cached }) => counted !== null && cached !== null);
  const counted = sum(told.map((prompt) => prompt.counted));
  return counted === 0 ? null : sum(told.map(({ cached }) => cached)) / counted;
}

/** How many messages there were at the end of each part of the time. */
function growthOf(pace: Stats["pace"]): readonly Bar[] {
  const [start, end] = [pace[0]?.[1] ?? 0, pace.at(-1)?.[1] ?? 0];
  const cells = Math.min(barsMax, Math.max(1, pace.length));
  return Array.from({ length: cells }, (_, at) => {
    const ms = start + ((end - start) * (at + 1)) / cells;
    return { label: clock(msToTimestamp(ms)), value: pace.findLast(([, each]) => each <= ms)?.[0] ?? 0 };
  });
}

function callsBar(some: Stats["calls"]): Bar {
  const [first] = some;
  return {
    label: first === undefined ? "" : `${some.length === 1 ? "1 call" : `${some.length} calls`}, ${clock(first.at)}`,
    value: sum(some.map(({ inputTokens, outputTokens }) => inputTokens + outputTokens)),
  };
}

/** What each change before the end of a prompt cost of the cache, the dearest first. */
function Folds({ prompts, of }: { readonly prompts: readonly PromptCost[]; readonly of: number }) {
  const rows = prompts.flatMap((prompt, at) => {
    const before = prompts[at - 1];
    return prompt.isChanged && before !== undefined ? [{ prompt, before, shared: prompt.shared ?? 0 }] : [];
  });
  if (rows.length === 0) return null;
  return (
    <>
      <h2>Folds, and other changes before the end of a prompt</h2>
      <Table
        label="What folds cost of the cache"
        columns={["prompt", "when", "sent again #", "still the same #", "bytes before #", "tokens #", "summaries #"]}
        rows={rows
          .toSorted((a, b) => b.before.bytes - b.shared - (a.before.bytes - a.shared))
          .map(({ prompt: { number, at, tokens, summaries }, before, shared }) => [
            number,
            <a href={addressOf("seen", of, { prompt: number })}>#{number}</a>,
            <When at={at} />,
            formatBytes(before.bytes - shared),
            formatBytes(shared),
            formatBytes(before.bytes),
            `${formatCount(before.tokens)} → ${formatCount(tokens)}`,
            `${before.summaries} → ${summaries}`,
          ])}
      />
    </>
  );
}

function Compactions({ rows }: { readonly rows: Stats["compactions"] }) {
  if (rows.length === 0) return null;
  const sorted = rows.toSorted((a, b) => timestampToMs(b.at) - timestampToMs(a.at));
  return (
    <>
      <h2>Compactions</h2>
      <Table
        label="Compactions"
        columns={["when", "mode", "summaries #", "tokens before #", "after #", "result"]}
        rows={sorted.map(({ at, mode, passes, tokensBefore, tokensAfter, message }, row) => [
          row,
          <When at={at} />,
          mode,
          formatCount(passes),
          formatCount(tokensBefore),
          formatCount(tokensAfter),
          message,
        ])}
      />
    </>
  );
}
