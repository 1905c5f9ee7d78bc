/** The bytes of our part of a prompt: one line of JSON per message, the guidance for the system prompt first. */

import { jsonText } from "../base/json.ts";
import type { HostMessage } from "../messages/codec.ts";

/** `lcm seen --text` prints these lines, so their hash is that of its output. */
export const lineOf = (message: HostMessage): string => `${jsonText(message)}\n`;

export const guidanceLine = (guidance: string): string => lineOf({ role: "system", content: guidance });
