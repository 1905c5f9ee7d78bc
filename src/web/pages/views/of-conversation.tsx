/** What the views of one conversation have in common: its name, the way back, and tabs between them. */

import type { ComponentChildren } from "preact";
import type { ConversationId } from "../../../core/model/types.ts";
import { useRead } from "../api.ts";
import { Heading } from "../parts/ui.tsx";
import { useKeys } from "../keys.ts";
import { addressOf, go, type View } from "../router.ts";

const tabs = [
  ["timeline", "Timeline", "T"],
  ["messages", "Messages", "M"],
  ["seen", "What the model saw", "S"],
  ["cost", "Cost", "O"],
  ["health", "Health", "H"],
  ["changes", "Changes", "C"],
] as const satisfies (readonly [View, string, key: string])[];

interface Props {
  readonly conversation: ConversationId;
  /** Where the view knows it already. */
  readonly name?: string;
  readonly view: View;
  /** The last step of the way back, if the view is about a part. */
  readonly part?: string;
  readonly children: ComponentChildren;
}

export function OfConversation({ conversation, name: known, view, part, children }: Props) {
  const asked = useRead("timeline", known === undefined ? { conversation, cells: 2 } : null, { live: false });
  const name = known ?? asked.value?.name ?? `#${conversation}`;
  useKeys("The conversation", [
    ...tabs.map(([each, words, key]) => ({
      keys: [key],
      does: words.charAt(0).toLowerCase() + words.slice(1),
      run: () => go(addressOf(each, conversation)),
    })),
    { keys: ["F"], does: "search in it", run: () => go(addressOf("search", "", { conversation })) },
  ]);
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
      </nav>
      {children}
    </>
  );
}

export const conversationIdOf = (text: string): ConversationId => Number(text) as ConversationId;
