/** Describes standing instructions: what is pinned, by whom and why, and where prompts show it. */

import type { AssemblyReport } from "../core/assembly/assemble.ts";
import type { PinChange } from "../core/maintenance/pins.ts";
import { formatTimestamp } from "../core/base/time.ts";
import { messageName, type Pin } from "../core/model/types.ts";
import type { Page } from "./page.ts";
import { oneLine } from "./safe-text.ts";
import { table } from "./table.ts";

/** `cue "always answer"`, `person: house rule`. */
export function whyPinned({ origin, reason }: Pick<Pin, "origin" | "reason">): string {
  if (reason === "") return origin;
  return origin === "cue" ? `cue "${oneLine(reason)}"` : `${origin}: ${oneLine(reason)}`;
}

/** What a change does, and what is so now. */
export function pinLines({ conversation, pin, before }: PinChange): readonly string[] {
  const verb = pin.state === "pinned" ? "pin" : "unpin";
  return [
    `${verb} in conversation ${conversation}: ${messageName(pin.message)} "${oneLine(pin.words)}"`,
    ...(before === null ? [] : [`now: ${before.state} (${whyPinned(before)})`]),
  ];
}

export type PinPlace = "front" | "message" | "left" | "unpinned";

/** Where the present prompt has it: at its front, in its own message, or nowhere. */
export function placeOfPin({ state, message }: Pin, { origins }: AssemblyReport): PinPlace {
  if (state === "unpinned") return "unpinned";
  if (origins.some((origin) => origin.kind === "message" && origin.id === message)) return "message";
  const isFront = origins.some((origin) => origin.kind === "note" && origin.standing?.includes(message));
  return isFront ? "front" : "left";
}

const placeWords: Readonly<Record<PinPlace, string>> = {
  front: "at the front",
  message: "in its message",
  left: "not shown",
  unpinned: "unpinned",
};

export function pinsTable(page: Page, pins: readonly (Pin & { readonly place: PinPlace })[]): readonly string[] {
  const { paint, columns, zone } = page;
  return table(
    [
      { title: "id", paint: paint.strong },
      { title: "said", paint: paint.soft },
      { title: "why", spare: true },
      { title: "in the prompt" },
      { title: "words", flexible: true },
    ],
    pins.map((pin) => [
      messageName(pin.message),
      formatTimestamp(pin.saidAt, zone),
      whyPinned(pin),
      placeWords[pin.place],
      oneLine(pin.words),
    ]),
    columns,
    paint,
  );
}
