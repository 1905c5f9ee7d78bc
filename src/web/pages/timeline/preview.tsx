/** The item that was opened on the timeline, below it: enough to know what it is, and where to go from there. */

import { plural } from "../../../core/base/format.ts";
import { messageName, type ConversationId, type MessageId, type SummaryId } from "../../../core/model/types.ts";
import { useRead } from "../api.ts";
import { Button, IdLink, Shown, StateBadge, When } from "../parts/ui.tsx";
import { addressOf } from "../router.ts";
import { Blocks, Markdown } from "../text/view.tsx";
import { depthName, levelWords, span } from "../words.ts";
import { itemWords } from "./in-view.tsx";
import { states } from "./layer.ts";
import type { Item, Stage } from "./stage.ts";

interface Props {
  readonly conversation: ConversationId;
  readonly item: Item;
  readonly stage: Stage | null;
  readonly onClose: () => void;
}

export function Preview({ conversation, item, stage, onClose }: Props) {
  const { id, first, last, state, row } = item;
  return (
    <aside class="preview" aria-label="The opened item">
      <Button class="quiet close" aria-label="Close the opened item" onClick={onClose}>
        ✕
      </Button>
      {id === null ? (
        <>
          <h2>{itemWords(conversation, item)}</h2>
          <div class="actions start">
            <Button onClick={() => stage?.show({ from: first, to: last })}>Zoom to them</Button>
            {row < 0 && <a href={addressOf("messages", conversation, { at: first })}>Read them</a>}
          </div>
        </>
      ) : typeof id === "number" ? (
        <MessagePreview id={id as MessageId} state={state} />
      ) : (
        <SummaryPreview id={id as SummaryId} state={state} />
      )}
    </aside>
  );
}

function MessagePreview({ id, state }: { readonly id: MessageId; readonly state: number }) {
  const asked = useRead("message", { id });
  return (
    <Shown asked={asked} what={messageName(id)}>
      {({ role, at, tokens, blocks, coveredBy }) => (
        <>
          <h2>
            <span class={`role role-${role}`}>{role}</span> <IdLink id={id} />
          </h2>
          <p class="soft">
            <When at={at} /> · {plural(tokens, "token")} · <StateBadge state={states[state] ?? "prompt"} />
            {coveredBy[0] !== undefined && (
              <>
                {" "}
                · part of <IdLink id={coveredBy[0].id} />
              </>
            )}
          </p>
          <div class="excerpt">
            <Blocks blocks={blocks} />
          </div>
          <p>
            <IdLink id={id}>Read it in full</IdLink> ·{" "}
            <a href={addressOf("when", messageName(id))}>When did the model see it?</a>
          </p>
        </>
      )}
    </Shown>
  );
}

function SummaryPreview({ id, state }: { readonly id: SummaryId; readonly state: number }) {
  const asked = useRead("summary", { id });
  return (
    <Shown asked={asked} what={id}>
      {({ depth, tokens, level, text, earliestAt, latestAt, sources, above }) => (
        <>
          <h2>
            {depthName(depth)} <IdLink id={id} />
          </h2>
          <p class="soft">
            {span(earliestAt, latestAt)} · {plural(tokens, "token")} · {levelWords[level]} ·{" "}
            <StateBadge state={states[state] ?? "prompt"} />
            {above[0] !== undefined && (
              <>
                {" "}
                · part of <IdLink id={above[0].id} />
              </>
            )}
          </p>
          <div class="excerpt">
            <Markdown text={text} />
          </div>
          <p>
            <IdLink id={id}>
              Read it beside its{" "}
              {sources.summaries > 0
                ? plural(sources.summaries, "source summary", "source summaries")
                : plural(sources.messages, "message")}
            </IdLink>{" "}
            · <a href={addressOf("when", id)}>When did the model see it?</a>
          </p>
        </>
      )}
    </Shown>
  );
}
