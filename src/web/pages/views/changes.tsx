/** Changes that people made, with their texts before and after, and the way back; and those that can be made. */

import { useState } from "preact/hooks";
import { formatCount, plural } from "../../../core/base/format.ts";
import type { ConversationId } from "../../../core/model/types.ts";
import { stateWords, type ChangeInShort } from "../../../format/shared-words.ts";
import { useRead } from "../api.ts";
import { ChangeButton } from "../parts/change-buttons.tsx";
import { diffOf, SideBySide } from "../parts/diff.tsx";
import { ItemsWords } from "../parts/items.tsx";
import { PlanDialog } from "../parts/plan-dialog.tsx";
import { Button, Empty, Heading, IdLink, Linked, Select, sentence, Shown, Table, When } from "../parts/ui.tsx";
import { addressOf } from "../router.ts";
import { useAround } from "../session.ts";
import { addressOfId, splitIds } from "../words.ts";
import { conversationIdOf, OfConversation } from "./of-conversation.tsx";

const perPage = 50;

export function ChangesView() {
  const { place, session } = useAround();
  const conversation = place.of === "" ? null : conversationIdOf(place.of);
  const [limit, setLimit] = useState(perPage);
  const asked = useRead("history", { limit, ...(conversation === null ? {} : { conversation }) }, { keeps: true });
  const body = (
    <>
      {session.readOnly !== null && <p class="note">{sentence(session.readOnly)} Plans can be seen all the same.</p>}
      {conversation !== null && <Begin conversation={conversation} />}
      <h2>History</h2>
      <Shown asked={asked} what="changes">
        {({ rows, isMore }) =>
          rows.length === 0 ? (
            <Empty title="Nothing was changed yet.">
              Rewrites, dissolved summaries, pins and the like appear here, each with its undo.
            </Empty>
          ) : (
            <>
              <ChangeTable rows={rows} />
              {isMore && <Button onClick={() => setLimit(limit + perPage)}>Show more</Button>}
            </>
          )
        }
      </Shown>
    </>
  );
  if (conversation === null)
    return (
      <>
        <Heading title="Changes">Changes</Heading>
        {body}
      </>
    );
  return (
    <OfConversation conversation={conversation} view="changes">
      {body}
    </OfConversation>
  );
}

/** Changes of a whole conversation. Those of a summary begin where it is read. */
function Begin({ conversation }: { readonly conversation: ConversationId }) {
  const [target, setTarget] = useState("");
  const [isOpen, setOpen] = useState(false);
  const others = useRead("conversations", { limit: 200, hidden: true }, { live: false });
  const options = others.value?.rows.flatMap(({ conversation: { id }, name }) =>
    id === conversation ? [] : [[String(id), `#${id} ${name}`] as const],
  );
  return (
    <section aria-label="Change the conversation">
      <div class="tools">
        <ChangeButton request={{ kind: "compact", conversation, isForced: false, isLocal: false }} words="Compact …" />
        <Select
          label="Copy its summaries into"
          options={[["", "choose a conversation"], ...(options ?? [])]}
          value={target}
          onChange={setTarget}
        />
        <Button disabled={target === ""} onClick={() => setOpen(true)}>
          Transplant …
        </Button>
      </div>
      {isOpen && (
        <PlanDialog
          request={{ kind: "transplant", source: conversation, target: conversationIdOf(target) }}
          act="Transplant"
          onClose={() => setOpen(false)}
        />
      )}
    </section>
  );
}

const ChangeTable = ({ rows }: { readonly rows: readonly ChangeInShort[] }) => (
  <Table
    isStacked
    label="Changes"
    columns={["change #", "when", "operation", "in", "details", "state"]}
    rows={rows.map((row) => [
      row.change,
      <a href={addressOf("change", row.change)}>{row.change}</a>,
      <When at={row.at} />,
      <a href={addressOf("change", row.change)}>{row.operation}</a>,
      row.conversations.length > 3
        ? plural(row.conversations.length, "conversation")
        : row.conversations.map((id) => (
            <a key={id} href={addressOf("timeline", id)}>
              #{id}{" "}
            </a>
          )),
      <Linked text={row.what} />,
      <>
        {stateWords(row)} {row.state !== "for good" && <UndoButton change={row} />}
      </>,
    ])}
  />
);

// ── One change ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** One button for both, so that its dialog outlives what it does. */
function UndoButton({ change: { change, operation, what, state, undoneBy } }: { readonly change: ChangeInShort }) {
  const isUndone = state === "undone";
  const [, of = `change ${change}`] = splitIds(what);
  const request = { kind: "undo", change: isUndone ? (undoneBy.at(-1) ?? change) : change } as const;
  const word = isUndone ? "Redo" : "Undo";
  return <ChangeButton request={request} words={`${word} …`} label={`${word} the ${operation} of ${of}`} />;
}

export function ChangeView() {
  const { place } = useAround();
  const number = Number(place.of);
  const asked = useRead("change", { change: number });
  return (
    <>
      <nav aria-label="Way back" class="crumbs">
        <a href={addressOf("changes")}>Changes</a> <span aria-hidden="true">›</span> <span>Change {number}</span>
      </nav>
      <Heading title={`Change ${number}`}>Change {number}</Heading>
      <Shown asked={asked} what={`change ${number}`}>
        {({ change, stepsLeft, items }) => (
          <>
            <p>
              {change.operation}: <Linked text={change.what} />
              {change.conversations.length > 0 && (
                <>
                  , in{" "}
                  {change.conversations.map((id) => (
                    <a key={id} href={addressOf("timeline", id)}>
                      #{id}
                    </a>
                  ))}
                </>
              )}
              , <When at={change.at} /> {stateWords(change) !== "" && <span class="badge">{stateWords(change)}</span>}
            </p>
            {change.state !== "for good" && <UndoButton change={change} />}
            {change.steps.map((step, at) => (
              <section key={at} class="step">
                {step.what !== change.what && (
                  <h2>
                    {addressOfId(step.subject) !== null && !step.what.includes(step.subject) && (
                      <IdLink id={step.subject} />
                    )}{" "}
                    <Linked text={step.what} />
                  </h2>
                )}
                {(items[at] ?? []).length > 0 && (
                  <p>
                    It was made of <ItemsWords items={items[at] ?? []} />.
                  </p>
                )}
                {step.texts !== null && (
                  <SideBySide lines={diffOf(step.texts.before, step.texts.after)} oldTitle="before" newTitle="after" />
                )}
              </section>
            ))}
            {stepsLeft > 0 && <p class="soft">and {formatCount(stepsLeft)} more steps</p>}
          </>
        )}
      </Shown>
    </>
  );
}
