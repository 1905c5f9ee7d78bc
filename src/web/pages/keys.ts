/** Keys: views declare theirs while they are shown, and the help lists all that work at the moment. */

import { useLayoutEffect, useRef } from "preact/hooks";

export interface Key {
  /** As `KeyboardEvent.key` has it; several for the same. */
  readonly keys: readonly string[];
  /** What it does, for the help. */
  readonly does: string;
  readonly run: (event: KeyboardEvent) => void;
}

interface Declared {
  readonly title: string;
  readonly keys: readonly Key[];
}

const active: Set<{ current: Declared }> = new Set();

/** Keys that work in every view. */
export const everywhere = "Everywhere";

/** The newest first, and those of the whole page last. */
export function activeKeys(): readonly Declared[] {
  const all = [...active].reverse().map(({ current }) => current);
  return [...all.filter(({ title }) => title !== everywhere), ...all.filter(({ title }) => title === everywhere)];
}

export function useKeys(title: string, keys: readonly Key[]): void {
  const declared = useRef<Declared>({ title, keys });
  declared.current = { title, keys };
  useLayoutEffect(() => {
    active.add(declared);
    return () => void active.delete(declared);
  }, []);
}

export const typesText = "input:not([type=checkbox]):not([type=radio]):not([type=range]), textarea, select";

/** In a field for searching, arrows lead out of it to what was found, and escape empties it first; else it leaves. */
function leads({ key }: KeyboardEvent, field: Element): boolean {
  const isSearch = field.matches("input[type=search]");
  const isEmptied = isSearch && "value" in field && field.value !== "";
  if (key === "Escape" && field instanceof HTMLElement && !isEmptied) field.blur();
  return isSearch && (key === "ArrowDown" || key === "ArrowUp");
}

export function listenToKeys(): void {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target instanceof Element ? event.target : null;
    if (document.querySelector("dialog[open]") !== null) return;
    if (target?.matches(typesText) === true && !leads(event, target)) return;
    for (const { keys } of activeKeys()) {
      const key = keys.find((each) => each.keys.includes(event.key));
      if (key === undefined) continue;
      event.preventDefault();
      key.run(event);
      return;
    }
  });
}

const names: Readonly<Record<string, string>> = {
  ArrowLeft: "←",
  ArrowRight: "→",
  ArrowUp: "↑",
  ArrowDown: "↓",
  Enter: "↵",
  Escape: "esc",
  " ": "space",
};

export const keyName = (key: string): string => names[key] ?? key;
