/** A summary beside what it was made from, aligned: a line of it leads to the sources that it most likely tells of. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { formatCount, plural } from "../../../core/base/format.ts";
import { seqOf } from "../../../core/model/types.ts";
import type { SummaryId } from "../../../core/model/types.ts";
import type { Block, SourcesPage, SummaryReading } from "../../contract.ts";
import { failureOf, read, useRead } from "../api.ts";
import { useKeys } from "../keys.ts";
import { useFound } from "../parts/found.ts";
import { ChangeButton, RewriteButton, SummaryButtons } from "../parts/change-buttons.tsx";
import { Button, FailureNote, IdLink, Shown, When } from "../parts/ui.tsx";
import { addressOf, go } from "../router.ts";
import { useAround } from "../session.ts";
import { align } from "../text/align.ts";
import { Blocks, Markdown } from "../text/view.tsx";
import { depthName, levelWords, span } from "../words.ts";
import { OfConversation } from "./of-conversation.tsx";

export function SummaryView() {
  const { place } = useAround();
  const id = place.of as SummaryId;
  const asked = useRead("summary", { id });
  return (
    <Shown asked={asked} what={id}>
      {(summary) => <SummaryReader key={id} summary={summary} />}
    </Shown>
  );
}

type Source = SourcesPage["sources"][number];

function SummaryReader({ summary }: { readonly summary: SummaryReading }) {
  const { id, conversation, name, depth, above, range, revision } = summary;
  useFound(true);
  const [focus, setFocus] = useState<readonly number[]>([]);
  const sources = useSources(id, revision);
  const texts = useMemo(() => sources.sources.map(textOfSource), [sources.sources]);
  const aligned = useMemo(() => align(summary.text, texts), [summary.text, texts]);
  // A line leads to its first source, for those who use keys, too.
  useEffect(() => {
    const first = document.querySelector<HTMLElement>(".source.focused");
    first?.focus({ preventScroll: true });
    first?.scrollIntoView({ block: "center", behavior: "smooth" });
  }, [focus]);
  const total = summary.sources.messages + summary.sources.summaries;
  const first = above[0];
  useKeys("Summary", [
    {
      keys: ["u"],
      does: "up: the summary made from this one",
      run: () => first !== undefined && go(addressOf("summary", first.id)),
    },
    { keys: ["t"], does: "show on the timeline", run: () => range !== null && go(timelineAddress(summary)) },
  ]);
  return (
    <OfConversation conversation={conversation} name={name} view="summary" part={`${depthName(depth)} ${id}`}>
      <About summary={summary} />
      <div class="beside">
        <section aria-label="The summary" class="beside-text">
          <h2>The summary</h2>
          <AlignedText aligned={aligned} focus={focus} onFocus={setFocus} />
        </section>
        <section aria-label="What it was made from" class="beside-sources">
          <h2>
            {summary.origin !== null && total === 0
              ? "Its sources are in the earlier segment"
              : `Made from ${formatCount(total)} ${summary.sources.summaries > 0 ? "summaries" : "messages"}`}
          </h2>
          {sources.failure !== null && <FailureNote failure={sources.failure} />}
          <ol class="sources">
            {sources.sources.map((source, at) => (
              <SourceItem key={at} source={source} at={at} isFocused={focus.includes(at)} />
            ))}
          </ol>
          {sources.next !== null && <Button onClick={sources.more}>Show more of {formatCount(total)} sources</Button>}
        </section>
      </div>
    </OfConversation>
  );
}

const timelineAddress = ({ id, conversation, range }: SummaryReading): string =>
  addressOf(
    "timeline",
    conversation,
    range === null ? {} : { from: seqOf(range.from), to: seqOf(range.to), focus: id },
  );

/** When and how it was written, what is wrong with it, what can be done, and where to go from it. */
function About({ summary }: { readonly summary: SummaryReading }) {
  const { id, level, model, tokens, rewriteReason, revision, above, range } = summary;
  const isOwn = summary.origin === null;
  return (
    <>
      <p class="soft">
        {span(summary.earliestAt, summary.latestAt)} ·{" "}
        <span title="In a prompt, the tags and ids around its text count, too.">{plural(tokens, "token")} of text</span>{" "}
        · {levelWords[level]}
        {model !== null && ` (${model})`} · folded <When at={summary.createdAt} />
        {revision > 0 && ` · rewritten ${plural(revision, "time")}`}
      </p>
      {level !== "normal" && (
        <p class="note caution">
          This summary was {levelWords[level]}.
          {isOwn && " Its sources are intact; a rewrite with a model gives a better text."}
        </p>
      )}
      {rewriteReason !== null && (
        <p class="note caution">Its text no longer matches its sources: {rewriteReason}. A rewrite sets it right.</p>
      )}
      <Standing summary={summary} />
      <ul class="plain facts-line">
        {above.map((each) => (
          <li key={each.id}>
            ↑ part of {depthName(each.depth)} <IdLink id={each.id} />
          </li>
        ))}
        {range !== null && (
          <li>
            <a href={timelineAddress(summary)}>On the timeline</a>
          </li>
        )}
        <li>
          <a href={addressOf("when", id)}>When did the model see it?</a>
        </li>
      </ul>
    </>
  );
}

/** What can be done with it; or why nothing can, and where instead. */
function Standing({ summary }: { readonly summary: SummaryReading }) {
  const { id, conversation, depth, dissolved, origin, rewriteReason } = summary;
  if (origin !== null)
    return (
      <p class="note">
        This is a copy, carried over from an earlier segment:{" "}
        <a href={addressOf("timeline", origin.conversation)}>#{origin.conversation}</a>. Its sources are there, with the
        original, <IdLink id={origin.id} />.{" "}
        {rewriteReason === null
          ? "The copy keeps its text, whatever becomes of the original."
          : "A rewrite of the original sets the copy right, too."}{" "}
        <RewriteButton
          conversation={origin.conversation}
          select={{ summary: origin.id }}
          words="Rewrite the original …"
        />
      </p>
    );
  return (
    <>
      {dissolved !== null && (
        <p class="note">
          Dissolved on <When at={dissolved.at} /> by{" "}
          <a href={addressOf("change", dissolved.change)}>change {dissolved.change}</a>: prompts show what it was made
          from instead.{" "}
          <ChangeButton
            request={{ kind: "undo", change: dissolved.change }}
            words="Undo …"
            label={`Undo the dissolve of ${id}`}
          />
        </p>
      )}
      <SummaryButtons conversation={conversation} summary={id} depth={depth} isDissolved={dissolved !== null} />
    </>
  );
}

const perPage = 100;

function useSources(summary: SummaryId, revision: number) {
  const [sources, setSources] = useState<readonly Source[]>([]);
  const [next, setNext] = useState<number | null>(null);
  const [failure, setFailure] = useState<ReturnType<typeof failureOf> | null>(null);
  const load = (from: number, before: readonly Source[]): void => {
    read("sources", { summary, from, limit: perPage }).then(
      (page) => {
        setSources([...before, ...page.sources]);
        setNext(page.next);
      },
      (error: unknown) => setFailure(failureOf(error)),
    );
  };
  useEffect(() => load(0, []), [summary, revision]);
  return { sources, next, failure, more: () => next !== null && load(next, sources) };
}

const textOfSource = (source: Source): string =>
  source.kind === "summary" ? source.text : source.blocks.map(textOfBlock).join("\n");

function textOfBlock(block: Block): string {
  switch (block.kind) {
    case "text":
    case "reasoning":
    case "result":
    case "file":
      return block.text;
    case "call":
      return `${block.name} ${JSON.stringify(block.input)}`;
    case "picture":
    case "reminder":
    case "other":
      return "";
  }
}

interface AlignedProps {
  readonly aligned: ReturnType<typeof align>;
  readonly focus: readonly number[];
  readonly onFocus: (sources: readonly number[]) => void;
}

/** Each line with sources has a button that leads to them. */
const AlignedText = ({ aligned, focus, onFocus }: AlignedProps) => (
  <div class="aligned">
    {aligned.map(({ line, sources }, at) => {
      const isFocused = sources.length > 0 && sources.join() === focus.join();
      return (
        <div key={at} class={isFocused ? "aligned-line focused" : "aligned-line"}>
          <Markdown text={line} />
          {sources.length > 0 && (
            <Button class="quiet small" aria-pressed={isFocused} onClick={() => onFocus(isFocused ? [] : sources)}>
              → {sources.map((source) => source + 1).join(", ")}
              <span class="visually-hidden"> are the sources of this line</span>
            </Button>
          )}
        </div>
      );
    })}
  </div>
);

interface SourceProps {
  readonly source: Source;
  readonly at: number;
  readonly isFocused: boolean;
}

function SourceItem({ source, at, isFocused }: SourceProps) {
  const isMessage = source.kind === "message";
  return (
    <li tabIndex={-1} class={`source${isFocused ? " focused" : ""}`} aria-current={isFocused ? "true" : undefined}>
      <header class="message-line">
        <span class="source-number">{at + 1}</span>
        {isMessage ? (
          <span class={`role role-${source.message.role}`}>{source.message.role}</span>
        ) : (
          <span>{depthName(source.summary.depth)}</span>
        )}
        <IdLink id={isMessage ? source.message.id : source.summary.id} />
        <span class="soft small">
          {isMessage ? <When at={source.message.at} /> : span(source.summary.earliestAt, source.summary.latestAt)} ·{" "}
          {plural(isMessage ? source.message.tokens : source.summary.tokens, "token")}
        </span>
      </header>
      {isMessage ? <Blocks blocks={source.blocks} /> : <Markdown text={source.text} />}
    </li>
  );
}
