/** What a layer offers: its keys with the reason against each, the keys that work everywhere, the palette's entries. */

import { commands, nothing, type Command } from "./commands.ts";
import type { Frame, PaletteEntry, Subject } from "./contract.ts";
import type { Offer } from "./keys.ts";
import { bindingFor, offeredIn, reasonAgainst, withModule, type Layer } from "./layers.ts";

type CommonAction = "palette" | "help" | "back" | "quit" | "suspend" | "redraw";

/** Used where the layer does not bind the key itself. */
export const commonKeys: readonly (Omit<Offer, "because"> & { readonly action: CommonAction })[] = [
  { keys: [":", "ctrl+p"], action: "palette", short: "commands", help: "find any command or key by its words" },
  { keys: ["?"], action: "help", short: "help", help: "show all keys of this screen" },
  { keys: ["escape", "q"], action: "back", short: "back", help: "go back; on the first screen, quit" },
  { keys: ["ctrl+c"], action: "quit", help: "quit immediately" },
  { keys: ["ctrl+z"], action: "suspend", help: "suspend to the shell; fg resumes" },
  { keys: ["ctrl+l"], action: "redraw", help: "redraw the screen" },
];

export const offersOf = (layer: Layer, frame: Frame): readonly Offer[] =>
  withModule(layer, (module, state) =>
    offeredIn(module, state).map((each): Offer => ({ ...each, because: reasonAgainst(each, state, frame) })),
  );

export const commonOffers = (isFirst: boolean): readonly Offer[] =>
  commonKeys.map((each) => ({
    ...each,
    ...(each.action === "back" && isFirst ? { keys: ["q", "escape"], short: "quit" } : {}),
    because: null,
  }));

/** What commands act on: the first that a layer names, from the top. */
export function subjectOf(layers: readonly Layer[]): Subject {
  for (const layer of layers.toReversed()) {
    const named = withModule(layer, (module, state): Partial<Subject> => {
      if (module.subject !== undefined) return module.subject(state);
      return "conversation" in state ? { conversation: state.conversation } : {};
    });
    if ((named.conversation ?? null) !== null) return { ...nothing, ...named };
  }
  return nothing;
}

/** The layer's own keys, then what can be done anywhere, then the common keys. */
export function paletteEntries(layer: Layer, frame: Frame, subject: Subject): readonly PaletteEntry[] {
  const own = ownEntries(layer, frame);
  const isOwn = (help: string): boolean => own.some((entry) => entry.help === help);
  return [
    ...own,
    ...Object.values(commands).flatMap((command) =>
      isOwn(command.help) ? [] : [commandEntry(command, subject, frame)],
    ),
    ...commonKeys.flatMap(({ keys: [key = ""], help, action }): readonly PaletteEntry[] =>
      action === "palette" || isOwn(help)
        ? []
        : [{ key, help, also: action, because: null, choice: { kind: "press", key } }],
    ),
  ];
}

/** Keys that move the cursor need no words. While text is typed, keys are text. */
const ownEntries = (layer: Layer, frame: Frame): readonly PaletteEntry[] =>
  withModule(layer, (module, state) => {
    if (module.isTyping?.(state) === true) return [];
    return offeredIn(module, state).flatMap((each): readonly PaletteEntry[] => {
      const key = each.keys.find((name) => bindingFor(module, state, name, frame) === each);
      if (each.moves === true || key === undefined) return [];
      const because = reasonAgainst(each, state, frame);
      const name = Object.values(commands).find(({ help }) => help === each.help)?.name ?? "";
      return [{ key, help: each.help, also: `${each.short ?? ""} ${name}`, because, choice: { kind: "press", key } }];
    });
  });

function commandEntry({ name, help, ...command }: Command, subject: Subject, frame: Frame): PaletteEntry {
  const place = command.place(subject);
  const because = reasonAgainst(
    {
      ...command,
      keys: [],
      help,
      disabled: () => (typeof place === "string" ? place : null),
      does: (state) => ({ state }),
    },
    null,
    frame,
  );
  const choice = typeof place === "string" ? ({ kind: "press", key: "" } as const) : ({ kind: "open", place } as const);
  return { key: null, help, also: name, because, choice };
}
