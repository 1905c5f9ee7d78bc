/**
 * The notation that the demo's conversation is written in, and its way into a host's messages. The first letter of a
 * line says what it is; an unmarked line goes on with the one above it, after a blank.
 *
 *   @ name MM-DD HH:MM   an arc begins: a stretch of conversation, with the time (UTC) of its first message
 *   > text               the user says
 *   < text               the assistant says
 *   ? text               the assistant thinks, before what it says or does next
 *   $ tool {"json":1}    the assistant calls a tool
 *   =text                its result, for the oldest call without one; =! if it failed
 *   ~ minutes            so much time passes before the next message
 *   |text                a further line, as it stands
 *   |* printer 12 …      so many lines from a printer (print.ts); also =*
 */

import type { Json, JsonObject } from "../../core/model.ts";
import { createChance } from "./chance.ts";
import { printLines } from "./print.ts";

export interface Arc {
  readonly name: string;
  /** Of its first message, in milliseconds. */
  readonly startMs: number;
  readonly messages: readonly Said[];
}

export interface Said {
  readonly message: JsonObject;
  /** What passes before it, where that is written. */
  readonly minutes: number | null;
}

export const demoYear = 2026;

export function readArcs(text: string): readonly Arc[] {
  const heading = /^@ (\S+) (\d\d)-(\d\d) (\d\d):(\d\d)$/m;
  const [, ...pieces] = text.split(/^(?=@ )/m);
  return pieces.map((piece) => {
    const [line = "", name = "", month, day, hour, minute] = heading.exec(piece) ?? [];
    if (line === "") throw new SyntaxError(`not the beginning of an arc: ${piece.slice(0, 60)}`);
    const startMs = Date.UTC(demoYear, Number(month) - 1, Number(day), Number(hour), Number(minute));
    return { name, startMs, messages: readMessages(name, piece.slice(line.length)) };
  });
}

/** One marked line with all that belongs to it. */
interface Mark {
  readonly mark: string;
  text: string;
}

export function readMessages(name: string, text: string): readonly Said[] {
  const messages: Said[] = [];
  const open: { readonly id: string; readonly tool: string }[] = [];
  let blocks: Json[] = [];
  let calls = 0;
  let minutes: number | null = null;
  const say = (message: JsonObject): void => {
    messages.push({ message, minutes });
    minutes = null;
  };
  const close = (): void => {
    if (blocks.length > 0) say(assistant(blocks, open.length > 0 ? "toolUse" : "stop"));
    blocks = [];
  };
  for (const { mark, text: said } of marksOf(name, text)) {
    switch (mark) {
      case ">":
        close();
        say({ role: "user", content: said });
        break;
      case "~":
        close();
        minutes = Number(said);
        break;
      case "<":
        if (blocks.some((block) => !isThinking(block))) close();
        blocks.push({ type: "text", text: said });
        break;
      case "?":
        close();
        blocks.push({ type: "thinking", thinking: said, thinkingSignature: btoa(`${name} ${messages.length}`) });
        break;
      case "$": {
        const [, tool = "", input = ""] = /^(\S+) (.+)$/s.exec(said) ?? [];
        const id = `call_${name}_${++calls}`;
        open.push({ id, tool });
        blocks.push({ type: "toolCall", id, name: tool, arguments: JSON.parse(input) as Json });
        break;
      }
      case "=":
      case "=!": {
        close();
        const call = open.shift();
        if (call === undefined) throw new SyntaxError(`a result without a call in ${name}: ${said.slice(0, 60)}`);
        const content = [{ type: "text", text: said }];
        const isError = mark === "=!";
        say({ role: "toolResult", toolCallId: call.id, toolName: call.tool, content, isError });
        break;
      }
    }
  }
  close();
  if (open.length > 0) throw new SyntaxError(`a call without a result in ${name}: ${open[0]?.id}`);
  return messages;
}

function marksOf(name: string, text: string): readonly Mark[] {
  const chance = createChance(name);
  const marks: Mark[] = [];
  for (const line of text.split("\n").filter((each) => each !== "")) {
    const [, sign = "", rest = ""] = /^([><?$~] |=!?|\||)(.*)$/su.exec(line) ?? [];
    const lines = rest.startsWith("* ") ? printLines(chance, rest.slice(2)) : [rest];
    const last = marks.at(-1);
    if (/^[><?$~=]/.test(sign)) marks.push({ mark: sign.trim(), text: lines.join("\n") });
    else if (last === undefined) throw new SyntaxError(`nothing to go on with in ${name}: ${line}`);
    else last.text += sign === "|" ? `\n${lines.join("\n")}` : ` ${rest}`;
  }
  return marks;
}

const isThinking = (block: Json): boolean => JSON.stringify(block).startsWith('{"type":"thinking"');

const assistant = (content: readonly Json[], stopReason: string): JsonObject => ({
  role: "assistant",
  content,
  provider: "demo",
  model: "demo-model",
  stopReason,
});
