/** Reading: a message as it came, what is around it, and a file. */

import { useEffect, useRef, useState } from "preact/hooks";
import { formatBytes, formatCount, plural } from "../../../core/base/format.ts";
import { messageName, parseMessageId, seqOf } from "../../../core/model/types.ts";
import type { ConversationId, FileId, MessageId } from "../../../core/model/types.ts";
import type { MessageInShort, MessageReading } from "../../contract.ts";
import { failureOf, read, useRead } from "../api.ts";
import { useKeys } from "../keys.ts";
import { Button, Empty, Field, IdLink, Shown, When } from "../parts/ui.tsx";
import { PinButton } from "../parts/change-buttons.tsx";
import { useFound } from "../parts/found.ts";
import { addressOf, go } from "../router.ts";
import { useAround } from "../session.ts";
import { Blocks, Code } from "../text/view.tsx";
import { addressOfId, clock, depthName, startOfDay, timelineOf } from "../words.ts";
import { conversationIdOf, OfConversation } from "./of-conversation.tsx";

export function MessageView() {
  const { place } = useAround();
  const id = parseMessageId(place.of);
  const asked = useRead("message", id === null ? null : { id });
  const message = asked.value;
  const step = (to: MessageId | null | undefined): void => {
    if (to !== null && to !== undefined) go(addressOf("message", messageName(to)));
  };
  useKeys("Message", [
    { keys: ["j", "ArrowRight"], does: "next message", run: () => step(message?.after) },
    { keys: ["k", "ArrowLeft"], does: "previous message", run: () => step(message?.before) },
    { keys: ["t"], does: "show on the timeline", run: () => id !== null && go(timelineOf(id)) },
    { keys: ["w"], does: "when the model saw it", run: () => id !== null && go(addressOf("when", messageName(id))) },
  ]);
  if (id === null)
    return <Empty title={`${place.of} is not a message.`}>msg_1-42 is message 42 of conversation 1.</Empty>;
  return (
    <Shown asked={asked} what={messageName(id)}>
      {(value) => <MessageReader message={value} />}
    </Shown>
  );
}

function MessageReader({ message }: { readonly message: MessageReading }) {
  const { id, conversation, name, role, at, tokens, coveredBy, prompt, before, after } = message;
  useFound(true);
  return (
    <OfConversation conversation={conversation} name={name} view="messages" part={messageName(id)}>
      <article class={`message role-${role}`} aria-label={`${role}, ${messageName(id)}`}>
        <header class="message-head">
          <strong class={`role role-${role}`}>{role}</strong> <When at={at} /> · {plural(tokens, "token")}
          {message.aside !== null && (
            <span class="badge">{message.aside === "note" ? "a note, not content" : "on a branch the host left"}</span>
          )}
          {message.isForgotten && <span class="badge bad">forgotten, in whole or in part</span>}
          {message.isDamaged && <span class="badge bad">damaged: it no longer says what was stored</span>}
        </header>
        <Blocks blocks={message.blocks} />
      </article>
      <nav class="pager" aria-label="Neighbours">
        {before === null ? <span /> : <a href={addressOf("message", messageName(before))}>← {messageName(before)}</a>}
        <a href={addressOf("messages", conversation, { at: seqOf(id) })}>In the conversation</a>
        {after === null ? <span /> : <a href={addressOf("message", messageName(after))}>{messageName(after)} →</a>}
      </nav>
      <section class="facts" aria-label="About this message">
        <h2>About this message</h2>
        <ul class="plain">
          <li>
            <a href={addressOf("when", messageName(id))}>When did the model see it, and since when no longer?</a>
          </li>
          {prompt !== null && (
            <li>
              <a href={addressOf("seen", conversation, { prompt })}>
                The prompt behind {role === "assistant" ? "it" : "the next answer"}: {conversation}#{prompt}
              </a>
            </li>
          )}
          <li>
            <a href={timelineOf(id)}>Show it on the timeline</a>
          </li>
          {coveredBy.map((summary) => (
            <li key={summary.id}>
              Part of {depthName(summary.depth)} <IdLink id={summary.id} />: <span class="soft">{summary.opening}</span>
            </li>
          ))}
          {message.files.map((file) => (
            <li key={file.id}>
              File <IdLink id={file.id} /> {file.name ?? ""} ({formatBytes(file.bytes)})
            </li>
          ))}
          <li>
            The host knows it as <code>{message.key}</code>
          </li>
        </ul>
        <PinButton message={message} />
      </section>
    </OfConversation>
  );
}

// ── The conversation ─────────────────────────────────────────────────────────────────────────────────────────────────

const perPage = 40;

/** Messages in order, each in short until it is opened. */
export function MessagesView() {
  const { place } = useAround();
  const conversation = conversationIdOf(place.of);
  const at = Number(place.settings["at"] ?? 0);
  const timeline = useRead("timeline", { conversation, cells: 2 });
  const extent = timeline.value?.extent ?? null;
  const start = at > 0 ? Math.max(1, at - 8) : Math.max(1, (extent?.to ?? 1) - perPage + 1);
  const asked = useRead("messages", extent === null ? null : { conversation, from: start, limit: perPage }, {
    keeps: true,
  });
  const page = (by: number): void => {
    const to = Math.max(1, Math.min(extent?.to ?? 1, start + by));
    go(addressOf("messages", conversation, { at: Math.max(9, to + 8) }));
  };
  const goToDay = async (day: string): Promise<void> => {
    const since = startOfDay(day);
    if (since === null) return;
    const [first] = await read("messages", { conversation, since, limit: 1 });
    go(addressOf("messages", conversation, { at: first?.seq ?? extent?.to }));
  };
  useKeys("Messages", [
    { keys: ["n", "PageDown"], does: "later messages", run: () => page(perPage) },
    { keys: ["p", "PageUp"], does: "earlier messages", run: () => page(-perPage) },
  ]);
  return (
    <Shown asked={timeline} what="the conversation">
      {({ name }) => (
        <OfConversation conversation={conversation} name={name} view="messages">
          {extent === null ? (
            <Empty title="No messages yet." />
          ) : (
            <Shown asked={asked} what="messages">
              {(messages) => (
                <>
                  <Files conversation={conversation} />
                  <Field type="date" size="short" label="Go to a day" value="" onInput={(day) => void goToDay(day)} />
                  <Pages start={start} last={messages.at(-1)?.seq ?? start} end={extent.to} onPage={page} />
                  {[...Map.groupBy(messages, (message) => clock(message.at).slice(0, dayLength))].map(([day, of]) => (
                    <section key={day} aria-label={day}>
                      <h2>{day}</h2>
                      <ol class="messages">
                        {of.map((message) => (
                          <MessageRow key={message.id} message={message} isTarget={message.seq === at} />
                        ))}
                      </ol>
                    </section>
                  ))}
                  <Pages start={start} last={messages.at(-1)?.seq ?? start} end={extent.to} onPage={page} />
                </>
              )}
            </Shown>
          )}
        </OfConversation>
      )}
    </Shown>
  );
}

const dayLength = "2026-02-17".length;

/** What is too large for a message is found here, pictures among it. */
function Files({ conversation }: { readonly conversation: ConversationId }) {
  const { value } = useRead("files", { conversation });
  if (value === null || value.length === 0) return null;
  return (
    <details class="block">
      <summary>{plural(value.length, "file or picture", "files and pictures")} of this conversation</summary>
      <ul class="plain">
        {value.map(({ id, name, mimeType, bytes }) => (
          <li key={id}>
            <IdLink id={id} /> {name ?? ""}{" "}
            <span class="soft">
              {mimeType ?? "unknown type"}, {formatBytes(bytes)}
            </span>
          </li>
        ))}
      </ul>
    </details>
  );
}

interface PagesProps {
  readonly start: number;
  readonly last: number;
  readonly end: number;
  readonly onPage: (by: number) => void;
}

const Pages = ({ start, last, end, onPage }: PagesProps) => (
  <div class="pager">
    <Button disabled={start <= 1} onClick={() => onPage(-perPage)}>
      ← Earlier
    </Button>
    <span class="soft">
      {formatCount(start)}–{formatCount(last)} of {formatCount(end)}
    </span>
    <Button disabled={last >= end} onClick={() => onPage(perPage)}>
      Later →
    </Button>
  </div>
);

export function MessageRow({
  message,
  isTarget = false,
}: {
  readonly message: MessageInShort;
  readonly isTarget?: boolean;
}) {
  const { id, role, at, tokens, opening, aside } = message;
  const [isOpen, setOpen] = useState(isTarget);
  const row = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (isTarget) row.current?.scrollIntoView({ block: "center" });
  }, [isTarget]);
  return (
    <li
      ref={row}
      class={`message-row role-${role}${isTarget ? " target" : ""}`}
      aria-current={isTarget ? "true" : undefined}
    >
      <div class="message-line">
        <Button
          class="quiet"
          aria-expanded={isOpen}
          aria-label={`${isOpen ? "Fold" : "Unfold"} ${messageName(id)}`}
          onClick={() => setOpen(!isOpen)}
        >
          {isOpen ? "▾" : "▸"}
        </Button>
        <span class={`role role-${role}`}>{role}</span>
        <a class="id" href={addressOfId(id) ?? ""}>
          {messageName(id)}
        </a>
        <span class="soft small nowrap">
          <When at={at} /> · {plural(tokens, "token")}
        </span>
        {aside !== null && <span class="badge">{aside}</span>}
      </div>
      {isOpen ? <MessageBody id={id} /> : <p class="opening">{opening}</p>}
    </li>
  );
}

/** `isPinnable`: with the button that keeps it in every prompt. */
export function MessageBody({ id, isPinnable = false }: { readonly id: MessageId; readonly isPinnable?: boolean }) {
  const asked = useRead("message", { id }, { live: isPinnable });
  return (
    <Shown asked={asked} what={messageName(id)}>
      {(message) => (
        <>
          <Blocks blocks={message.blocks} />
          {isPinnable && <PinButton message={message} />}
        </>
      )}
    </Shown>
  );
}

// ── Files ────────────────────────────────────────────────────────────────────────────────────────────────────────────

export function FileView() {
  const { place } = useAround();
  const id = place.of as FileId;
  const line = Number(place.settings["line"] ?? 1);
  const asked = useRead("file", { id, ...(line > 1 ? { fromLine: line } : {}) }, { live: false });
  useFound(asked.value !== null);
  return (
    <Shown asked={asked} what={id}>
      {({ file, message, text, picture }) => (
        <OfConversation conversation={file.conversation} view="file" part={file.name ?? file.id}>
          <p class="soft">
            {file.id} · {formatBytes(file.bytes)} · {file.mimeType ?? "unknown type"}
            {file.lines !== null && ` · ${plural(file.lines, "line")}`}
            {message !== null && (
              <>
                {" "}
                · moved out of <IdLink id={message} />
              </>
            )}
          </p>
          {file.exploration !== null && <p>{file.exploration}</p>}
          {picture !== null && <img class="picture" src={picture} alt={file.name ?? file.id} />}
          {text === null && picture === null && <Empty title="Its bytes cannot be shown as text." />}
          {text !== null && (
            <>
              {text.fromLine > 1 && <a href={addressOf("file", id)}>From the beginning</a>}
              <Code text={text.text} language={/\.(\w+)$/.exec(file.name ?? "")?.[1] ?? "text"} />
              {text.nextLine !== null && (
                <a href={addressOf("file", id, { line: text.nextLine })}>From line {formatCount(text.nextLine)} on</a>
              )}
            </>
          )}
        </OfConversation>
      )}
    </Shown>
  );
}

// ── Going to an id ───────────────────────────────────────────────────────────────────────────────────────────────────

/** Opens what an id names, or says that nothing has it. */
export async function openId(text: string): Promise<string | null> {
  try {
    const id = text.trim();
    const { kind, conversation } = await read("find", { id });
    const message = parseMessageId(id);
    if (kind === "conversation") go(addressOf("timeline", conversation));
    else if (kind === "message" && message !== null) go(addressOf("message", messageName(message)));
    else go(addressOfId(id) ?? addressOf("timeline", conversation));
    return null;
  } catch (error) {
    return failureOf(error).message;
  }
}
