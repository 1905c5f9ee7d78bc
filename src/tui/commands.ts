/** What can be done from any screen, as data: the palette lists it, and screens bind keys to it. */

import type { ConversationId } from "../core/model/types.ts";
import { opens, type Binding, type Destination, type Its, type Subject } from "./contract.ts";

export interface Command {
  /** As on the command line; finds it in the palette. */
  readonly name: string;
  /** In the imperative, without a full stop. */
  readonly help: string;
  readonly changes?: true;
  readonly asksModel?: true;
  /** What it opens, or why it cannot. */
  readonly place: (subject: Subject) => Destination | string;
}

const ofConversation =
  (place: (conversation: ConversationId) => Destination): Command["place"] =>
  ({ conversation }) =>
    conversation === null ? "no conversation is selected" : place(conversation);

const its = (name: string, kind: Its, help: string): Command => ({
  name,
  help,
  place: ofConversation((conversation) => ({ kind, conversation })),
});

export const commands = {
  messages: its("messages", "messages", "show the conversation's messages"),
  summaries: its("dag", "summaries", "show the conversation's summaries"),
  context: its("context", "context", "show the prompt the model gets"),
  prompts: its("seen stats prompts", "prompts", "show the prompts that were sent, turn by turn"),
  seen: {
    name: "seen behind",
    help: "show the prompt behind the selected message: what the model saw",
    place: ({ conversation, message }) =>
      conversation === null || message === null
        ? "no message is selected"
        : { kind: "prompts", conversation, behind: message },
  },
  search: its("grep", "search", "search this conversation"),
  files: its("describe", "files", "show the conversation's files"),
  history: its("history undo", "history", "show the history of changes, and undo them"),
  standing: its("status", "status", "show the status of the conversation"),
  compact: {
    name: "compact sweep",
    help: "compact: fold old messages into summaries",
    changes: true,
    place: ofConversation((conversation) => ({ kind: "compact", conversation })),
  },
  ask: {
    name: "ask question",
    help: "ask a question about this conversation",
    place: ofConversation((conversation) => ({ kind: "line", question: { kind: "ask", conversation } })),
  },
  export: {
    name: "export save",
    help: "export the conversation to a file",
    place: ofConversation((conversation) => ({ kind: "line", question: { kind: "export", conversation } })),
  },
  repair: {
    name: "repair rewrite",
    help: "repair damaged summaries with a model",
    changes: true,
    asksModel: true,
    place: ofConversation((conversation) => ({ kind: "rewrite", conversation, select: { repair: true } })),
  },
  fix: {
    name: "doctor fix",
    help: "fix findings whose correct value can be derived",
    changes: true,
    place: ofConversation((conversation) => ({ kind: "fix", conversation })),
  },
  transplant: {
    name: "transplant copy",
    help: "copy its summaries into another conversation",
    changes: true,
    place: ofConversation((source) => ({ kind: "targets", source })),
  },
  pin: {
    name: "pins pin unpin standing instruction",
    help: "pin the selected message's standing instruction, or unpin it",
    changes: true,
    place: ({ message }) => (message === null ? "no message is selected" : { kind: "pin", message }),
  },
  forget: {
    name: "forget redact remove",
    help: "forget the selected message",
    changes: true,
    place: ({ message }) =>
      message === null ? "no message is selected" : { kind: "forget", target: { kind: "message", id: message } },
  },
  prune: {
    name: "prune remove archive",
    help: "delete or archive the conversation",
    changes: true,
    place: ofConversation((conversation) => ({ kind: "prune", select: { conversation } })),
  },
  conversations: {
    name: "conversations",
    help: "list all conversations",
    place: () => ({ kind: "conversations" }),
  },
  searchAll: {
    name: "grep",
    help: "search all conversations",
    place: () => ({ kind: "search", conversation: null }),
  },
  askAll: {
    name: "ask question",
    help: "ask a question about all conversations",
    place: () => ({ kind: "line", question: { kind: "ask", conversation: null } }),
  },
  status: {
    name: "status",
    help: "show the status of the database",
    place: () => ({ kind: "status", conversation: null }),
  },
  historyAll: {
    name: "history undo",
    help: "show the history of all conversations",
    place: () => ({ kind: "history", conversation: null }),
  },
  import: {
    name: "import transcripts",
    help: "import the host's transcripts",
    place: () => ({ kind: "transcripts" }),
  },
  forgetSecret: {
    name: "forget redact remove password",
    help: "forget a secret everywhere it occurs",
    changes: true,
    place: () => ({ kind: "line", question: { kind: "forget" } }),
  },
  pruneOld: {
    name: "prune remove archive",
    help: "delete or archive conversations that have been inactive for long",
    changes: true,
    place: () => ({ kind: "line", question: { kind: "prune" } }),
  },
  backup: {
    name: "backup copy",
    help: "back up the database and its files",
    changes: true,
    place: () => ({ kind: "backup" }),
  },
  restore: {
    name: "restore backup",
    help: "restore a backup of the database",
    changes: true,
    place: () => ({ kind: "backups" }),
  },
} as const satisfies Readonly<Record<string, Command>>;

export const nothing: Subject = { conversation: null, message: null };

/** A key for a command. */
export function commandKey<S>(
  { help, place, changes, asksModel }: Command,
  keys: readonly string[],
  subject: (state: S) => Partial<Subject>,
  short?: string,
): Binding<S> {
  const placeIn = (state: S): Destination | string => place({ ...nothing, ...subject(state) });
  return {
    keys,
    help,
    ...(short !== undefined && { short }),
    ...(changes && { changes }),
    ...(asksModel && { asksModel }),
    disabled: (state) => {
      const found = placeIn(state);
      return typeof found === "string" ? found : null;
    },
    does: opens((state) => {
      const found = placeIn(state);
      return typeof found === "string" ? null : found;
    }),
  };
}
