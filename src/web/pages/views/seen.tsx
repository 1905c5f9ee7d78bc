/** What the model saw: a slider over recorded prompts, what each was made of, and what changed from one to the next. */

import { useEffect, useState } from "preact/hooks";
import { formatBytes, formatCount, plural } from "../../../core/base/format.ts";
import type { PromptRecord } from "../../../core/model/prompts.ts";
import type { ConversationId, MessageId, SummaryId } from "../../../core/model/types.ts";
import type { PromptChange } from "../../../core/seen/compare.ts";
import type { PromptItem, PromptReading } from "../../contract.ts";
import { useRead } from "../api.ts";
import { useKeys } from "../keys.ts";
import { Amount, ShareBar, type Share } from "../parts/plot.tsx";
import { Button, Field, IdLink, Note, Shown, type Typed, useStill, When } from "../parts/ui.tsx";
import { addressOf, replace, withSettings } from "../router.ts";
import { useAround } from "../session.ts";
import { Blocks, Code } from "../text/view.tsx";
import { conversationIdOf, OfConversation } from "./of-conversation.tsx";

export function SeenView() {
  const { place } = useAround();
  const conversation = conversationIdOf(place.of);
  const pages = useRead("prompts", { conversation });
  return (
    <OfConversation conversation={conversation} view="seen">
      <Shown asked={pages} what="recorded prompts">
        {({ first, last }) => <Prompts key={conversation} conversation={conversation} first={first} last={last} />}
      </Shown>
    </OfConversation>
  );
}

interface PromptsProps {
  readonly conversation: ConversationId;
  readonly first: number | null;
  readonly last: number | null;
}

/** One step behind the newest recorded prompt is the one that would be sent now. */
function Prompts({ conversation, first, last }: PromptsProps) {
  const { place } = useAround();
  const now = (last ?? 0) + 1;
  const asked = place.settings["prompt"];
  const wanted = asked === undefined ? (last ?? now) : asked === "now" ? now : Number(asked);
  const [number, setNumber] = useState(wanted);
  // The slider moves away from what the address named; a link may name the same again.
  useEffect(() => setNumber(wanted), [place]);
  const still = useStill(number, 120);
  const move = (to: number): void => setNumber(Math.max(first ?? now, Math.min(now, to)));
  useEffect(() => {
    if (still !== wanted) replace(withSettings(place, { prompt: still === now ? "now" : still }));
  }, [still]);
  useKeys("What the model saw", [
    { keys: ["ArrowLeft", "p"], does: "previous prompt", run: () => move(number - 1) },
    { keys: ["ArrowRight", "n"], does: "next prompt", run: () => move(number + 1) },
    { keys: ["Home"], does: "first prompt", run: () => move(first ?? now) },
    { keys: ["End"], does: "the prompt that would be sent now", run: () => move(now) },
  ]);
  const isNow = number >= now;
  return (
    <>
      <div class="slider">
        <Button aria-label="Previous prompt" disabled={number <= (first ?? now)} onClick={() => move(number - 1)}>
          ←
        </Button>
        <label class="grow">
          <span class="visually-hidden">Prompt</span>
          <input
            type="range"
            min={first ?? now}
            max={now}
            value={number}
            aria-valuetext={isNow ? "now" : `prompt ${number}`}
            onInput={(event: Typed) => move(Number(event.currentTarget.value))}
          />
        </label>
        <Button aria-label="Next prompt" disabled={isNow} onClick={() => move(number + 1)}>
          →
        </Button>
        <output>{isNow ? "now" : `prompt ${formatCount(number)} of ${formatCount(last ?? 0)}`}</output>
      </div>
      {first === null && (
        <p class="soft">
          No prompt was recorded yet, so there is only the one that would be sent now. Prompts are recorded where
          lossless-claw builds them.
        </p>
      )}
      {still >= now ? <Now conversation={conversation} /> : <Recorded conversation={conversation} number={still} />}
    </>
  );
}

function Recorded({ conversation, number }: { readonly conversation: ConversationId; readonly number: number }) {
  const asked = useRead("prompt", { conversation, number }, { keeps: true });
  return (
    <Shown asked={asked} what={`prompt ${number}`}>
      {(prompt) => <Prompt prompt={prompt} />}
    </Shown>
  );
}

function Now({ conversation }: { readonly conversation: ConversationId }) {
  const [words, setWords] = useState("");
  const budget = useStill(Number(words), 300);
  const asked = useRead("promptNow", { conversation, ...(budget > 0 ? { budget } : {}) }, { keeps: true });
  return (
    <>
      <Field type="number" size="short" label="With another budget, in tokens" value={words} onInput={setWords} />
      <Shown asked={asked} what="the prompt">
        {(prompt) => <Prompt prompt={prompt} {...(budget > 0 ? { budget } : {})} />}
      </Shown>
    </>
  );
}

// ── A prompt ─────────────────────────────────────────────────────────────────────────────────────────────────────────

interface PromptProps {
  readonly prompt: PromptReading;
  readonly budget?: number;
}

function Prompt({ prompt, budget }: PromptProps) {
  const { record, report, items, guidance, isExact, reasons, notes, changes, conversation, answer } = prompt;
  return (
    <>
      <p>
        {record === null ? "The prompt that would be sent now" : <RecordWords record={record} />}
        {answer !== null && (
          <>
            , behind <IdLink id={answer} />
          </>
        )}
        : <strong>{formatCount(report.tokens)} tokens</strong>,{" "}
        {Math.round((100 * report.tokens) / Math.max(1, report.budget))}% of a budget of {formatCount(report.budget)}.
      </p>
      {record?.head.hosts !== undefined && (
        <p class="note caution">The host sent its own messages: {record.head.hosts}.</p>
      )}
      <ShareBar shares={sharesOf(prompt)} label="what the prompt is made of" format={formatCount} />
      {notes.map((note) => (
        <Note key={note} words={note} />
      ))}
      {record !== null && (
        <p>
          <a href={addressOf("timeline", conversation, { prompt: record.number })}>
            Show on the timeline what it held and what it left out
          </a>
        </p>
      )}
      {changes !== null && <Changes prompt={prompt} />}
      {record !== null && (
        <p class="soft">
          {isExact
            ? `Rebuilt to the byte: ${formatBytes(record.bytes)}.`
            : `Not rebuilt to the byte: ${reasons.join("; ")}.`}
        </p>
      )}
      <h2>
        {plural(items.length, "item")} <span class="soft small">in the order in which the model reads them</span>
      </h2>
      {guidance !== null && (
        <details class="block">
          <summary>Added to the system prompt: the guidance about recall</summary>
          <Code text={guidance} language="text" />
        </details>
      )}
      <ol class="items">
        {items.map((item, at) => (
          <Item
            key={`${record?.number ?? "now"} ${at}`}
            item={item}
            at={at}
            of={{ conversation, number: record?.number, budget }}
            most={Math.max(...items.map(({ origin }) => origin.tokens))}
          />
        ))}
      </ol>
    </>
  );
}

const RecordWords = ({ record }: { readonly record: PromptRecord }) => (
  <>
    Prompt {record.conversation}#{record.number} of <When at={record.at} />
    {record.head.model !== undefined && `, to ${record.head.model}`}
    {record.outcome === "overflow" && ", refused as too long"}
    {record.counted !== null && `, ${formatCount(record.counted)} tokens counted by the provider`}
    {record.counted !== null && record.cached !== null && `, ${formatCount(record.cached)} of them from its cache`}
  </>
);

function sharesOf({ report }: PromptReading): readonly Share[] {
  const { depths, older, tail, notes, standing, budget, tokens } = report;
  const shares: readonly Share[] = [
    { name: "standing instructions", look: "look-standing", ...standing },
    ...depths
      .toSorted((a, b) => b.depth - a.depth)
      .map(({ depth, items, tokens: own }) => ({
        name: depth === 0 ? "leaf summaries" : `d${depth} summaries`,
        look: `look-depth-${Math.min(3, depth)}`,
        items,
        tokens: own,
      })),
    { name: "older messages", look: "look-older", ...older },
    { name: "fresh tail", look: "look-tail", ...tail },
    { name: "notes", look: "look-notes", ...notes },
    { name: "free", look: "look-free", items: null, tokens: Math.max(0, budget - tokens) },
  ];
  return shares.filter((share) => share.tokens > 0);
}

// ── What changed ─────────────────────────────────────────────────────────────────────────────────────────────────────

const verbs: Readonly<Record<PromptChange["kind"], string>> = {
  arrived: "arrived",
  folded: "folded into",
  evicted: "no longer shown: evicted, or deleted",
  left: "no longer shown: the host went back to an earlier message",
  unfolded: "shown in place of",
  returned: "shown again",
  rewritten: "rewritten",
  shortened: "shortened",
  "whole again": "shown whole again",
  pinned: "repeated as standing instructions",
  unpinned: "no longer repeated as standing instructions",
};

function Changes({ prompt: { changes, conversation } }: { readonly prompt: PromptReading }) {
  if (changes === null) return null;
  const { before, after, sharedBytes, changes: all } = changes;
  const share = Math.floor((100 * sharedBytes) / Math.max(1, after.bytes));
  return (
    <section class="changes" aria-label="What changed">
      <h2>
        What changed since{" "}
        <a href={addressOf("seen", conversation, { prompt: before.number })}>prompt {before.number}</a>
      </h2>
      <p class="soft">
        {formatCount(before.tokens)} → {formatCount(after.tokens)} tokens; the first {formatBytes(sharedBytes)} are the
        same ({share}%)
      </p>
      {all.length === 0 ? (
        <p>They show the same.</p>
      ) : (
        <ul class="change-list">
          {all.map((change) => (
            <li key={`${change.kind} ${change.of}`} class={`change-${change.kind.replace(" ", "-")}`}>
              <ItemsWords items={change.items} /> <span>{verbs[change.kind]}</span>{" "}
              {change.of !== null && <IdLink id={change.of} />}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

const namedMax = 4;

/** Messages in a row are named by the first and the last. */
function runsOf(
  items: readonly (MessageId | SummaryId)[],
): readonly (readonly [MessageId | SummaryId, MessageId | SummaryId])[] {
  const runs: (readonly [MessageId | SummaryId, MessageId | SummaryId])[] = [];
  const messages = items.filter((id) => typeof id === "number").toSorted((a, b) => a - b);
  for (const id of [...messages, ...items.filter((id) => typeof id === "string")]) {
    const last = runs.at(-1);
    if (last !== undefined && typeof id === "number" && last[1] === id - 1) runs[runs.length - 1] = [last[0], id];
    else runs.push([id, id]);
  }
  return runs;
}

function ItemsWords({ items }: { readonly items: readonly (MessageId | SummaryId)[] }) {
  const [isWhole, setWhole] = useState(false);
  const runs = runsOf(items);
  const shown = isWhole ? runs : runs.slice(0, namedMax);
  const left = runs.length - shown.length;
  return (
    <>
      <strong>{plural(items.length, "item")}</strong>{" "}
      {shown.map(([from, to], at) => (
        <>
          {at > 0 && ", "}
          <IdLink id={from} />
          {from !== to && (
            <>
              {" – "}
              <IdLink id={to} />
            </>
          )}
        </>
      ))}
      {left > 0 && (
        <Button class="quiet small" onClick={() => setWhole(true)}>
          and {left} more
        </Button>
      )}
    </>
  );
}

// ── Items ────────────────────────────────────────────────────────────────────────────────────────────────────────────

interface ItemProps {
  readonly item: PromptItem;
  readonly at: number;
  readonly of: {
    readonly conversation: ConversationId;
    readonly number: number | undefined;
    readonly budget: number | undefined;
  };
  readonly most: number;
}

function Item({ item: { origin, name, at: time, opening }, at, of, most }: ItemProps) {
  const [isOpen, setOpen] = useState(false);
  const look =
    origin.kind === "summary"
      ? `look-depth-${Math.min(3, origin.depth)}`
      : origin.kind === "note"
        ? "look-notes"
        : origin.part === "tail"
          ? "look-tail"
          : "look-older";
  return (
    <li class="item">
      <div class="message-line">
        <Button
          class="quiet"
          aria-expanded={isOpen}
          aria-label={`${isOpen ? "Fold" : "Unfold"} ${name}`}
          onClick={() => setOpen(!isOpen)}
        >
          {isOpen ? "▾" : "▸"}
        </Button>
        <span class={`swatch ${look}`} aria-hidden="true" />
        {origin.kind === "note" ? <span>{name}</span> : <IdLink id={origin.id}>{name}</IdLink>}
        {time !== null && (
          <span class="soft small nowrap">
            <When at={time} />
          </span>
        )}
        <Amount share={origin.tokens / Math.max(1, most)} />
        <span class="soft small">{formatCount(origin.tokens)} tokens</span>
      </div>
      {isOpen ? <ItemBody at={at} of={of} /> : <p class="opening">{opening}</p>}
    </li>
  );
}

function ItemBody({ at, of: { conversation, number, budget } }: Pick<ItemProps, "at" | "of">) {
  const asked = useRead(
    "promptItem",
    {
      conversation,
      item: at,
      ...(number === undefined ? {} : { number }),
      ...(budget === undefined ? {} : { budget }),
    },
    { live: false },
  );
  return (
    <Shown asked={asked} what="the item">
      {({ role, blocks }) => (
        <>
          <p class="soft small">Exactly what the model got, as {role}:</p>
          <Blocks blocks={blocks} />
        </>
      )}
    </Shown>
  );
}
