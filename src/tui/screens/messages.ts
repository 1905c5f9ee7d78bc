/** Not yet. */

import type { Frame, Module, Place, Step } from "../contract.ts";

export interface MessagesScreen {
  readonly kind: "messages";
}

export const openMessages = (
  _place: Extract<Place, { readonly kind: "messages" }>,
  _frame: Frame,
): Step<MessagesScreen> => ({ state: { kind: "messages" } });

export const messagesModule: Module<MessagesScreen, never> = {
  name: "Messages",
  keys: [],
  title: () => "messages",
  update: (state) => ({ state }),
  draw: () => ["not yet"],
};
