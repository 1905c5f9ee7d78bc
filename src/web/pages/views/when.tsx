/** When the model saw a message or summary: which prompts had it in view, how, and since when none has. */

import { plural } from "../../../core/base/format.ts";
import type { ConversationId, SummaryId } from "../../../core/model/types.ts";
import type { ViewSpan } from "../../../core/seen/find-seen.ts";
import { viewWords } from "../../../format/shared-words.ts";
import { useRead } from "../api.ts";
import { Empty, IdLink, Linked, sentence, Shown, Table, When } from "../parts/ui.tsx";
import { addressOf, go } from "../router.ts";
import { useAround } from "../session.ts";
import { addressOfId } from "../words.ts";
import { Markdown } from "../text/view.tsx";
import { MessageBody } from "./reading.tsx";
import { OfConversation } from "./of-conversation.tsx";
import { useKeys } from "../keys.ts";

export function WhenView() {
  const { place } = useAround();
  const asked = useRead("inView", { id: place.of });
  useKeys("When the model saw it", [{ keys: ["o"], does: "open it", run: () => go(addressOfId(place.of) ?? "") }]);
  return (
    <Shown asked={asked} what="recorded prompts">
      {({ conversation, id, spans, words }) => (
        <OfConversation conversation={conversation} view="seen" part="When the model saw it">
          <p>
            <IdLink id={id} />
          </p>
          {typeof id === "number" && (
            <div class="excerpt">
              <MessageBody id={id} isPinnable />
            </div>
          )}
          <p class="verdict" role="status">
            <Linked text={sentence(words)} />
          </p>
          <LastWhole spans={spans} conversation={conversation} />
          <Cover by={spans.at(-1)?.by ?? null} />
          <Spans spans={spans} conversation={conversation} />
        </OfConversation>
      )}
    </Shown>
  );
}

/** The text of the summary that covers it, which may leave it out. */
function Cover({ by }: { readonly by: SummaryId | null }) {
  const asked = useRead("summary", by === null ? null : { id: by });
  if (by === null || asked.value === null) return null;
  return (
    <details class="block">
      <summary>What the model reads in its place: {by}</summary>
      <Markdown text={asked.value.text} />
    </details>
  );
}

interface SpansProps {
  readonly spans: readonly ViewSpan[];
  readonly conversation: ConversationId;
}

/** The answer to "since when no longer", if it is only part of something now. */
function LastWhole({ spans, conversation }: SpansProps) {
  const last = spans.findLast(({ view }) => view === "whole");
  if (last === undefined || last === spans.at(-1)) return null;
  const { number, at } = last.to;
  return (
    <p>
      The last prompt that showed it whole was{" "}
      <a href={addressOf("seen", conversation, { prompt: number })}>prompt {number}</a> of <When at={at} />.
    </p>
  );
}

function Spans({ spans, conversation }: SpansProps) {
  const total = spans.reduce((sum, { prompts }) => sum + prompts, 0);
  if (total === 0) return <Empty title="No recorded prompt is newer than it." />;
  return (
    <>
      <div
        class="share-bar"
        role="img"
        aria-label={spans.map(({ view, prompts }) => `${plural(prompts, "prompt")} ${viewWords[view]}`).join(", then ")}
      >
        {spans.map(({ view, prompts }, at) => (
          <span
            key={at}
            class={`view-${view}`}
            title={`${viewWords[view]}: ${plural(prompts, "prompt")}`}
            style={{ flexGrow: Math.max(1, (1_000 * prompts) / total) }}
          />
        ))}
      </div>
      <Table
        isStacked
        label="In which prompts the model saw it"
        columns={["from", "to", "prompts #", "the model saw it"]}
        rows={spans.map(({ view, by, from, to, prompts }, at) => [
          at,
          ...[from, to].map(({ number, at: time }) => (
            <>
              <a href={addressOf("seen", conversation, { prompt: number })}>#{number}</a> <When at={time} />
            </>
          )),
          <>
            {prompts}
            <span class="phone-only"> prompts</span>
          </>,
          <>
            <span class={`swatch view-${view}`} aria-hidden="true" /> {viewWords[view]}{" "}
            {by !== null && <IdLink id={by} />}
          </>,
        ])}
      />
    </>
  );
}
