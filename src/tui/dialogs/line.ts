/** The dialog that asks for a line of text: a path, an age, a secret, a question. */

import type { Asking, Destination, Frame, Module, Question, Step } from "../contract.ts";
import { drawField, field, pasted, textOf, typed, type Field } from "../widgets/field.ts";
import { breakLines } from "../../format/width.ts";

export interface LineDialog {
  readonly kind: "line";
  readonly question: Question;
  readonly typing: Field;
}

const columnsMax = 84;

interface Wording {
  readonly title: string;
  readonly asked: string;
  readonly hint: string;
}

function wordsOf(question: Question): Wording {
  switch (question.kind) {
    case "export":
      return {
        title: `export conversation ${question.conversation}`,
        asked: "Write it to which file?",
        hint: "as JSONL, identical to what was imported; nothing is written before you confirm it",
      };
    case "prune":
      return {
        title: "delete or archive old conversations",
        asked: "Inactive for how long?",
        hint: "for example 90d, 12w, 1y, or a day such as 2026-01-01; the plan is shown first",
      };
    case "forget":
      return {
        title: "forget a secret",
        asked: "Which text is to be removed everywhere?",
        hint: "exactly as it occurs, such as a password; the plan is shown first",
      };
    case "ask":
      return {
        title:
          question.conversation === null
            ? "ask about all conversations"
            : `ask about conversation ${question.conversation}`,
        asked: "What do you want to know?",
        hint: "with a model you get an answer with its sources, without one the passages that match",
      };
  }
}

/** What the text completes; null if it completes nothing. */
function placeOf(question: Question, text: string): Destination | null {
  const trimmed = text.trim();
  if (trimmed === "") return null;
  switch (question.kind) {
    case "export":
      return { kind: "export", conversation: question.conversation, path: trimmed };
    case "prune":
      return { kind: "prune", select: { olderThan: trimmed } };
    case "forget":
      return { kind: "forget", target: { kind: "secret", text } };
    case "ask":
      return { kind: "ask", conversation: question.conversation, question: trimmed };
  }
}

export const lineModule: Module<LineDialog> = {
  name: "A line of text",
  open: (place) => ({ ...place, typing: field() }),
  keys: [],
  box(state, { columns }) {
    const width = Math.min(columnsMax, columns - 4);
    return { columns: width, rows: linesOf(state, width).length + 4 };
  },
  title: ({ question }) => wordsOf(question).title,
  subject: ({ question }) => ("conversation" in question ? { conversation: question.conversation } : {}),
  isTyping: () => true,
  reads: ({ question, typing }): readonly Asking[] =>
    question.kind === "export" && textOf(typing) === ""
      ? [{ kind: "exportPath", conversation: question.conversation }]
      : [],
  answers: {
    exportPath: (state, path) => ({ state: textOf(state.typing) === "" ? { ...state, typing: field(path) } : state }),
  },
  on: {
    pasted: (state, { text }) => ({ state: { ...state, typing: pasted(state.typing, text) } }),
    key(state, { key }): Step<LineDialog> {
      if (key.name === "escape") return { state, go: { kind: "back" } };
      if (key.name !== "enter") return { state: { ...state, typing: typed(state.typing, key) } };
      const place = placeOf(state.question, textOf(state.typing));
      if (place === null) return { state, notice: { tone: "info", text: "type something first, or press esc" } };
      return { state, go: { kind: "become", place } };
    },
  },
  draw(state, frame: Frame) {
    const { columns, paint } = frame;
    const { asked } = wordsOf(state.question);
    const hint = linesOf(state, columns).map(paint.soft);
    return [paint.strong(asked), "", drawField(">", state.typing, columns, paint), "", ...hint];
  },
};

const linesOf = ({ question }: LineDialog, columns: number): readonly string[] =>
  breakLines(wordsOf(question).hint, columns);
