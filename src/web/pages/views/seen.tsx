/** What the model saw: a slider over recorded prompts, what each was made of, and what changed from one to the next. */

import { useEffect, useState } from "preact/hooks";
import { formatBytes, formatCount, plural } from "../../../core/base/format.ts";
import type { PromptRecord } from "../../../core/model/prompts.ts";
import type { ConversationId } from "../../../core/model/types.ts";
import { changeVerbs } from "../../../format/shared-words.ts";
import type { PromptItem, PromptReading } from "../../contract.ts";
import { read, useRead } from "../api.ts";
import { useKeys } from "../keys.ts";
import { ItemsWords } from "../parts/items.tsx";
import { Amount, ShareBar, type Share } from "../parts/plot.tsx";
import { Button, Field, IdLink, Note, Shown, type Typed, useStill, When } from "../parts/ui.tsx";
import { addressOf, replace, withSettings } from "../router.ts";
import { useAround } from "../session.ts";
import { Blocks, Code } from "../text/view.tsx";
import { clock, endOfDay } from "../words.ts";
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
  const [shown, setShown] = useState<PromptRecord | null>(null);
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
        <Button disabled={isNow} onClick={() => move(now)}>
          Now
        </Button>
        <output>
          {isNow ? "now" : `prompt ${formatCount(number)} of ${formatCount(last ?? 0)}`}
          {shown?.number === number && !isNow && `, ${clock(shown.at)}`}
        </output>
        {first !== null && <ToDay conversation={conversation} onPrompt={(to) => move(to ?? first)} />}
      </div>
      {first === null && (
        <p class="soft">
          No prompt was recorded yet, so there is only the one that would be sent now. Prompts are recorded where
          lossless-claw builds them.
        </p>
      )}
      {still >= now ? (
        <Now conversation={conversation} />
      ) : (
        <Recorded conversation={conversation} number={still} onShown={setShown} />
      )}
    </>
  );
}

interface ToDayProps {
  readonly conversation: ConversationId;
  /** Null if all are newer. */
  readonly onPrompt: (number: number | null) => void;
}

function ToDay({ conversation, onPrompt }: ToDayProps) {
  const find = async (day: string): Promise<void> => {
    const at = endOfDay(day);
    if (at === null) return;
    const found = await read("prompt", { conversation, at }).catch(() => null);
    onPrompt(found?.record?.number ?? null);
  };
  return <Field type="date" label="The last of a day" value="" onInput={(day) => void find(day)} />;
}

interface RecordedProps {
  readonly conversation: ConversationId;
  readonly number: number;
  readonly onShown: (record: PromptRecord | null) => void;
}

function Recorded({ conversation, number, onShown }: RecordedProps) {
  const asked = useRead("prompt", { conversation, number }, { keeps: true });
  useEffect(() => onShown(asked.value?.record ?? null), [asked.value]);
  return (
    <Shown asked={asked} what={`prompt ${number}`}>
      {(prompt) => <Prompt prompt={prompt} budget={undefined} />}
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
        {(prompt) => <Prompt prompt={prompt} budget={budget > 0 ? budget : undefined} />}
      </Shown>
    </>
  );
}

// ── A prompt ─────────────────────────────────────────────────────────────────────────────────────────────────────────

interface PromptProps {
  readonly prompt: PromptReading;
  readonly budget: number | undefined;
}

function Prompt({ prompt, budget }: PromptProps) {
  const { record, report, isExact, reasons, notes, leftOut, changes, conversation, answer } = prompt;
  const mayWrite = useAround().session.readOnly === null;
  return (
    <>
      <p>
        {record === null ? "The prompt that would be sent now" : <RecordWords record={record} />}
        {answer !== null && (
          <>
            , behind <IdLink id={answer} />
          </>
        )}
        : <strong>{formatCount(report.tokens)} tokens</strong> as we estimate,{" "}
        {Math.round((100 * report.tokens) / Math.max(1, report.budget))}% of a budget of {formatCount(report.budget)}.
      </p>
      {record !== null && record.counted !== null && (
        <p class="soft">
          The provider counted {formatCount(record.counted)} tokens
          {record.cached !== null && `, and read ${formatCount(record.cached)} of them from its cache`}. Providers count
          in their own way, and with what the host adds.
        </p>
      )}
      {record?.head.hosts !== undefined && (
        <p class="note caution">The host sent its own messages: {record.head.hosts}.</p>
      )}
      <ShareBar shares={sharesOf(prompt)} label="what the prompt is made of" format={formatCount} />
      {notes.map((note) => (
        <Note key={note} words={mayWrite ? note.replace(compacting, "") : note}>
          {mayWrite && compacting.test(note) && <a href={addressOf("changes", conversation)}> Compact makes room</a>}
        </Note>
      ))}
      {leftOut.length > 0 && (
        <p class="soft">
          Left out (counted with the tags and ids around summaries): <ItemsWords items={leftOut} />
        </p>
      )}
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
      <Items prompt={prompt} budget={budget} />
    </>
  );
}

function Items({ prompt: { record, items, guidance, conversation }, budget }: PromptProps) {
  const most = Math.max(...items.map(({ origin }) => origin.tokens));
  return (
    <>
      <h2>
        {plural(items.length, "item")}{" "}
        <span class="soft small">
          in the order in which the model reads them; a summary counts with the tags and ids around its text
        </span>
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
            most={most}
          />
        ))}
      </ol>
    </>
  );
}

/** Where a command would help, the page has a button for it, if it may. */
const compacting = /; `lcm compact` makes room$/;

const RecordWords = ({ record }: { readonly record: PromptRecord }) => (
  <>
    Prompt {record.conversation}#{record.number} of <When at={record.at} />
    {record.head.model !== undefined && `, to ${record.head.model}`}
    {record.outcome === "overflow" && ", refused as too long"}
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
        {formatCount(before.tokens)} → {formatCount(after.tokens)} tokens;{" "}
        {sharedBytes === 0
          ? "nothing at the beginning is the same"
          : `the first ${formatBytes(sharedBytes)} are the same (${share}%)`}
      </p>
      {all.length === 0 ? (
        <p>They show the same.</p>
      ) : (
        <ul class="change-list">
          {all.map((change) => (
            <li key={`${change.kind} ${change.of}`} class={`change-${change.kind.replace(" ", "-")}`}>
              <ItemsWords items={change.items} /> <span>{changeVerbs[change.kind]}</span>{" "}
              {change.of !== null && <IdLink id={change.of} />}
            </li>
          ))}
        </ul>
      )}
    </section>
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
