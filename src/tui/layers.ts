/** The registry of all screens and dialogs, and how an event advances one of them. */

import type { AskAnswer, Ask } from "./asks.ts";
import type { Binding, Frame, Happening, LayerEvent, Module, Destination, Step } from "./contract.ts";
import { contextModule } from "./context/screen.ts";
import { conversationsModule } from "./conversations/screen.ts";
import { summariesModule } from "./summaries/screen.ts";
import { filesModule } from "./files/screen.ts";
import { searchModule } from "./search/screen.ts";
import { historyModule } from "./history/screen.ts";
import { promptsModule } from "./prompts/screen.ts";
import { messagesModule } from "./messages/screen.ts";
import { statusModule } from "./status/screen.ts";
import { transcriptsModule } from "./transcripts/screen.ts";
import { askModule } from "./ask/screen.ts";
import * as changes from "./dialogs/changes.ts";
import { backupsModule } from "./dialogs/backups.ts";
import { lineModule } from "./dialogs/line.ts";
import { paletteModule } from "./dialogs/palette.ts";
import { rewriteModule } from "./dialogs/rewrite/dialog.ts";
import { targetsModule } from "./dialogs/targets.ts";
import { textModule } from "./dialogs/text.ts";

type Kind = Destination["kind"];

const all = {
  conversations: conversationsModule,
  messages: messagesModule,
  summaries: summariesModule,
  context: contextModule,
  prompts: promptsModule,
  files: filesModule,
  search: searchModule,
  status: statusModule,
  history: historyModule,
  transcripts: transcriptsModule,
  ask: askModule,
  dissolve: changes.dissolveModule,
  rewrite: rewriteModule,
  targets: targetsModule,
  transplant: changes.transplantModule,
  undo: changes.undoModule,
  fix: changes.fixModule,
  compact: changes.compactModule,
  prune: changes.pruneModule,
  pin: changes.pinModule,
  forget: changes.forgetModule,
  restore: changes.restoreModule,
  backups: backupsModule,
  export: changes.exportModule,
  backup: changes.backupModule,
  palette: paletteModule,
  line: lineModule,
  text: textModule,
};

export type Layer<K extends Kind = Kind> = {
  readonly [P in K]: { readonly kind: P } & ReturnType<(typeof all)[P]["open"]>;
}[K];

const byKind: { readonly [K in Kind]: Module<Layer<K>> } = all;

/** For `docs/keys.md` and tests. */
export const modules: readonly { readonly name: string; readonly keys: readonly Omit<Binding<never>, "does">[] }[] =
  Object.values(all);

/** Calls `use` with a layer and its module. */
export function withModule<K extends Kind, R>(
  layer: Layer<K>,
  use: <S extends Layer>(module: Module<S>, state: S) => R,
): R {
  const kind: K = layer.kind;
  return use(byKind[kind], layer);
}

export function open<K extends Kind>(place: Destination<K>): Step<Layer<K>> {
  const kind: K = place.kind;
  const module = byKind[kind];
  const state = module.open(place);
  return { state, ...readsOf(module, state) };
}

function readsOf<S extends { readonly kind: Kind }>({ reads }: Module<S>, state: S): Pick<Step<S>, "asks"> {
  const asks = reads?.(state) ?? [];
  return asks.length === 0 ? {} : { asks };
}

/** The keys that exist in this state. */
export const offeredIn = <S extends { readonly kind: Kind }>({ keys }: Module<S>, state: S): readonly Binding<S>[] =>
  keys.filter(({ when }) => when?.(state) ?? true);

/** Why a key is unavailable; null if it is available. */
export function reasonAgainst<S>(binding: Binding<S>, state: S, frame: Frame): string | null {
  if (binding.changes === true && frame.readOnly !== null) return frame.readOnly;
  if (binding.asksModel === true && (frame.noModel ?? null) !== null) return frame.noModel ?? null;
  return binding.disabled?.(state, frame) ?? null;
}

/** The first available of several bindings of a key. */
export function bindingFor<S extends { readonly kind: Kind }>(
  module: Module<S>,
  state: S,
  key: string,
  frame: Frame,
): Binding<S> | null {
  const bindings = offeredIn(module, state).filter(({ keys }) => keys.includes(key));
  return bindings.find((each) => reasonAgainst(each, state, frame) === null) ?? bindings[0] ?? null;
}

export function advance<S extends { readonly kind: Kind }>(
  module: Module<S>,
  state: S,
  event: LayerEvent,
  frame: Frame,
): Step<S> {
  const step = stepOf(module, state, event, frame) ?? { state };
  if (module.follow === undefined || event.kind === "failed") return step;
  const next = module.follow(step.state, frame, state);
  const asks = [...(step.asks ?? []), ...(next.asks ?? [])];
  return { ...step, state: next.state, ...(asks.length > 0 && { asks }) };
}

function stepOf<S extends { readonly kind: Kind }>(
  module: Module<S>,
  state: S,
  event: LayerEvent,
  frame: Frame,
): Step<S> | undefined {
  switch (event.kind) {
    case "pressed":
      return bindingFor(module, state, event.name, frame)?.does(state, frame);
    case "answer":
      return answered(module, state, event.answer, frame);
    case "changed":
    case "returned":
      return handled(module, state, event, frame) ?? { state, ...readsOf(module, state) };
    default:
      return handled(module, state, event, frame);
  }
}

function answered<S extends { readonly kind: Kind }, K extends Ask["kind"]>(
  { answers = {} }: Module<S>,
  state: S,
  { kind, ask, result }: AskAnswer<K>,
  frame: Frame,
): Step<S> | undefined {
  const of: K = kind;
  return answers[of]?.(state, result, frame, ask);
}

function handled<S extends { readonly kind: Kind }, K extends Happening>(
  { on = {} }: Module<S>,
  state: S,
  event: LayerEvent<K>,
  frame: Frame,
): Step<S> | undefined {
  const kind: K = event.kind;
  return on[kind]?.(state, event, frame);
}
