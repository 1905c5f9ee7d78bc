/** All layers there are, and how each is opened. The one place that knows them all. */

import type { Binding, Frame, Module, Place, Step } from "./contract.ts";
import { contextModule, openContext } from "./screens/context.ts";
import type { ContextScreen } from "./screens/context.ts";
import { conversationsModule, openConversations } from "./screens/conversations.ts";
import type { ConversationsScreen } from "./screens/conversations.ts";
import { dagModule, openDag } from "./screens/dag.ts";
import type { DagScreen } from "./screens/dag.ts";
import { filesModule, openFiles } from "./screens/files.ts";
import type { FilesScreen } from "./screens/files.ts";
import { grepModule, openGrep } from "./screens/grep.ts";
import type { GrepScreen } from "./screens/grep.ts";
import { historyModule, openHistory } from "./screens/history.ts";
import type { HistoryScreen } from "./screens/history.ts";
import { messagesModule, openMessages } from "./screens/messages.ts";
import type { MessagesScreen } from "./screens/messages.ts";
import { openStatus, statusModule } from "./screens/status.ts";
import type { StatusScreen } from "./screens/status.ts";
import { openTranscripts, transcriptsModule } from "./screens/transcripts.ts";
import type { TranscriptsScreen } from "./screens/transcripts.ts";
import { dissolveModule, openDissolve } from "./dialogs/dissolve.ts";
import type { DissolveDialog } from "./dialogs/dissolve.ts";
import { openRewrite, rewriteModule } from "./dialogs/rewrite.ts";
import type { RewriteDialog } from "./dialogs/rewrite.ts";
import { openRewrites, rewritesModule } from "./dialogs/rewrites.ts";
import type { RewritesDialog } from "./dialogs/rewrites.ts";
import { openText, textModule } from "./dialogs/text.ts";
import type { TextDialog } from "./dialogs/text.ts";
import { openTransplant, transplantModule } from "./dialogs/transplant.ts";
import type { TransplantDialog } from "./dialogs/transplant.ts";
import { openUndo, undoModule } from "./dialogs/undo.ts";
import type { UndoDialog } from "./dialogs/undo.ts";

export type Layer =
  | ConversationsScreen
  | MessagesScreen
  | DagScreen
  | ContextScreen
  | FilesScreen
  | GrepScreen
  | StatusScreen
  | HistoryScreen
  | TranscriptsScreen
  | DissolveDialog
  | RewriteDialog
  | RewritesDialog
  | TransplantDialog
  | UndoDialog
  | TextDialog;

/** Does something with a layer and the module that knows it, whichever that is. */
export function withModule<R>(
  layer: Layer,
  use: <S extends Layer, A extends string>(module: Module<S, A>, state: S) => R,
): R {
  switch (layer.kind) {
    case "conversations":
      return use(conversationsModule, layer);
    case "messages":
      return use(messagesModule, layer);
    case "dag":
      return use(dagModule, layer);
    case "context":
      return use(contextModule, layer);
    case "files":
      return use(filesModule, layer);
    case "grep":
      return use(grepModule, layer);
    case "status":
      return use(statusModule, layer);
    case "history":
      return use(historyModule, layer);
    case "transcripts":
      return use(transcriptsModule, layer);
    case "dissolve":
      return use(dissolveModule, layer);
    case "rewrite":
      return use(rewriteModule, layer);
    case "rewrites":
      return use(rewritesModule, layer);
    case "transplant":
      return use(transplantModule, layer);
    case "undo":
      return use(undoModule, layer);
    case "text":
      return use(textModule, layer);
  }
}

export function open(place: Place, frame: Frame): Step<Layer> {
  switch (place.kind) {
    case "conversations":
      return openConversations();
    case "messages":
      return openMessages(place, frame);
    case "dag":
      return openDag(place);
    case "context":
      return openContext(place);
    case "files":
      return openFiles(place);
    case "grep":
      return openGrep(place);
    case "status":
      return openStatus(place);
    case "history":
      return openHistory(place);
    case "transcripts":
      return openTranscripts();
    case "dissolve":
      return openDissolve(place);
    case "rewrite":
      return openRewrite(place);
    case "rewrites":
      return openRewrites(place);
    case "transplant":
      return openTransplant(place);
    case "undo":
      return openUndo(place);
    case "text":
      return openText(place);
  }
}

/** For the document of all keys, and for whoever walks over them. */
export const modules: readonly {
  readonly name: string;
  readonly keys: readonly Pick<Binding<never, string>, "keys" | "action" | "says" | "changes" | "disabled">[];
  readonly isOffered?: (state: never, action: never) => boolean;
}[] = [
  conversationsModule,
  messagesModule,
  dagModule,
  contextModule,
  filesModule,
  grepModule,
  statusModule,
  historyModule,
  transcriptsModule,
  dissolveModule,
  rewriteModule,
  rewritesModule,
  transplantModule,
  undoModule,
  textModule,
];
