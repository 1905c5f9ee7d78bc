/** What the views of one conversation have in common: its name, the way back, and tabs between them. */

import type { ComponentChildren } from "preact";
import type { ConversationId } from "../../../core/model/types.ts";
import { Heading } from "../parts/ui.tsx";
import { addressOf, type View } from "../router.ts";

const tabs = [
  ["timeline", "Timeline"],
  ["messages", "Messages"],
  ["seen", "What the model saw"],
  ["cost", "Cost"],
  ["health", "Health"],
] as const satisfies (readonly [View, string])[];

interface Props {
  readonly conversation: ConversationId;
  readonly name: string;
  readonly view: View;
  /** The last step of the way back, if the view is about a part. */
  readonly part?: string;
  readonly children: ComponentChildren;
}

export function OfConversation({ conversation, name, view, part, children }: Props) {
  const title = part ?? tabs.find(([each]) => each === view)?.[1] ?? name;
  return (
    <>
      <nav aria-label="Way back" class="crumbs">
        <a href={addressOf("conversations")}>Conversations</a> <span aria-hidden="true">›</span>{" "}
        {part === undefined ? <span>#{conversation}</span> : <a href={addressOf("timeline", conversation)}>{name}</a>}
      </nav>
      <Heading title={`${title} · ${name}`}>{part ?? name}</Heading>
      <nav class="tabs" aria-label="Views of the conversation">
        {tabs.map(([each, words]) => (
          <a key={each} href={addressOf(each, conversation)} aria-current={each === view ? "page" : undefined}>
            {words}
          </a>
        ))}
        <a href={addressOf("search", "", { conversation })}>Search in it</a>
        <a href={addressOf("changes", conversation)} aria-current={view === "changes" ? "page" : undefined}>
          Changes
        </a>
      </nav>
      {children}
    </>
  );
}

export const conversationIdOf = (text: string): ConversationId => Number(text) as ConversationId;
