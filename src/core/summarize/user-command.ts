/** Recognises a command that the user ran himself, in the shapes in which hosts store it, and writes it with its output. */

import type { Message } from "../model/types.ts";
import type { JsonObject } from "../base/json.ts";
import { isCheck, outputText } from "./output-text.ts";

interface UserCommand {
  /** The command and its output. */
  readonly text: string;
  /** What the user wrote beside it. */
  readonly words: string;
}

/** Null for any other message. */
export function commandByUser({ role, text }: Message, fields: JsonObject): UserCommand | null {
  const { command, output, exitCode, cancelled } = fields;
  if (role !== "assistant" && role !== "tool" && typeof command === "string" && typeof output === "string") {
    const failed = typeof exitCode === "number" && exitCode !== 0 ? `exit code ${exitCode}` : "";
    return {
      text: written(command, output, cancelled === true ? "cancelled" : failed),
      words: text.replace(command, "").replace(output, "").trim(),
    };
  }
  return role === "user" ? (ranCommand(text) ?? taggedCommand(text)) : null;
}

/** `Ran` and the command in backticks, then the output in a fence: what Pi tells a model. */
function ranCommand(text: string): UserCommand | null {
  const [begun, command = ""] = /^Ran `([^`]{1,4000})`\n(?=```|\(no output\))/.exec(text) ?? [];
  if (begun === undefined) return null;
  const [output = "", ...rest] = text
    .slice(begun.length)
    .replace(/^```.*\n?/, "")
    .split(/^```[ \t]*$/m);
  const isSilent = output.startsWith("(no output)");
  const words = [isSilent ? output.slice("(no output)".length) : "", ...rest].join("```").replace(/^```/, "");
  return { text: written(command, isSilent ? "" : output, ""), words: words.trim() };
}

const tagNames = ["bash-input", "bash-stdout", "bash-stderr", "local-command-stdout"];

/** What Claude Code stores for `!command` and for its own commands. */
function taggedCommand(text: string): UserCommand | null {
  const found = new Map<string, string>();
  let rest = text;
  for (const name of tagNames) {
    const [start, end] = [rest.indexOf(`<${name}>`), rest.indexOf(`</${name}>`)];
    if (start === -1 || end < start) continue;
    found.set(name, rest.slice(start + name.length + 2, end).trim());
    rest = rest.slice(0, start) + rest.slice(end + name.length + 3);
  }
  if (found.size === 0 || !tagNames.some((name) => text.trimStart().startsWith(`<${name}>`))) return null;
  const [command = "", ...outputs] = tagNames.map((name) => found.get(name) ?? "");
  return { text: written(command, outputs.filter((each) => each !== "").join("\n"), ""), words: rest.trim() };
}

const written = (command: string, output: string, ending: string): string =>
  [
    command.trim() === "" ? "" : `$ ${command.trim()}`,
    outputText(output.trim(), isCheck(command) ? "check" : "output"),
    ending,
  ]
    .filter((line) => line !== "")
    .join("\n");
