/** Recognises a command that the user ran himself, in the shapes in which hosts store it, and writes it with its output. */

import type { Message } from "../model/types.ts";
import type { JsonObject } from "../base/json.ts";
import { outputText } from "./output-text.ts";

/** Null for any other message. */
export function commandByUser({ role, text }: Message, fields: JsonObject): string | null {
  const { command, output, exitCode, cancelled } = fields;
  if (role !== "assistant" && role !== "tool" && typeof command === "string" && typeof output === "string") {
    const failed = typeof exitCode === "number" && exitCode !== 0 ? `exit code ${exitCode}` : "";
    return written(command, output, cancelled === true ? "cancelled" : failed);
  }
  const [begun, typed = ""] = (role === "user" ? (ranForm.exec(text) ?? taggedForm.exec(text)) : null) ?? [];
  return begun === undefined ? null : written(typed, text.slice(begun.length).replace(frame, ""), "");
}

/** `Ran` and the command in backticks, then the output in a fence: what Pi tells a model. */
const ranForm = /^Ran `([^`]{1,4000})`\n(?=```|\(no output\))/;
/** What Claude Code stores for `!command` and for its own commands. */
const taggedForm =
  /^\s{0,9}(?:<bash-input>([^]{0,4000}?)<\/bash-input>|(?=<(?:bash-stdout|bash-stderr|local-command-stdout)>))/;
const frame = /^```\w{0,20}$|<\/?(?:bash-stdout|bash-stderr|local-command-stdout)>/gm;

const written = (command: string, output: string, ending: string): string =>
  [command.trim() === "" ? "" : `$ ${command.trim()}`, outputText(output.trim(), "output"), ending]
    .filter((line) => line !== "")
    .join("\n");
