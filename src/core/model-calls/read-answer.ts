/**
 * Reads a model's answer: extracts the summary, without reasoning, greetings, announcements and wrappers.
 * A reasoning tag counts only where it begins or ends a line or has a matching tag, so a summary may mention such tags.
 * Without a summary after the reasoning, the result is empty: better none than a wrong one. Every pattern runs in linear
 * time, since a broken model may write without end.
 */

import { greeting, is, summarising, thinksAloud } from "./reasoning-openers.ts";
import { footerStart } from "../prompts/summary.ts";

/** The summary in an answer; empty if there is none. */
export const readAnswer = (answer: string): string => withoutPreamble(unwrap(withoutThoughts(answer))).trim();

/** An answer of any form, without reasoning. */
export function withoutThoughts(answer: string): string {
  const text = answer.toWellFormed().replace(/\r\n?/g, "\n").replace(controls, "");
  return withoutMarks(withoutReasoning(finalChannel(text)));
}

const controls = /[\p{Cc}--[\n\t]]/gv;

/** A channel mark begins a line or a turn; in the middle of a sentence it is only mentioned. */
const channelMark = /(?:^[ \t]{0,8}|<\|start\|>(?:assistant)?|<\|end\|>)<\|channel\|>\s{0,8}(\w{1,20})/gm;

/** Some models answer in channels, of which "final" is the answer; the marks around the names may be missing. */
function finalChannel(text: string): string {
  const marks = [...text.matchAll(channelMark)];
  const final = marks.findLast(([, name]) => name === "final");
  if (final !== undefined) {
    const answer = text.slice(final.index + final[0].length).replace(/^[^<\n]{0,40}<\|message\|>/, "");
    return answer.replace(/<\|(?:end|return|start)\|>[^]*$/, "");
  }
  if (marks.length > 0) return "";
  if (!/^\s{0,8}(?:analysis|commentary)(?=\n|[^\s\p{Ll}:,.;])/u.test(text)) return text;
  const at = text.lastIndexOf("assistantfinal");
  return at === -1 ? "" : text.slice(at + "assistantfinal".length);
}

const thought = "think(?:ing)?|thoughts?|reasoning|analysis|reflection|scratchpad|(?:inner|internal)[_-]?monologue";
const inThoughtName = "think|thought|reason|reflect|analysis|scratchpad|monologue|(?<![a-z])cot(?![a-z])";
const nameChars = "[\\w▁:.-]{0,40}";
const thoughtTag = new RegExp(
  `(?:<|&lt;)[|｜]?\\s{0,4}/?\\s{0,4}${nameChars}?(?:${inThoughtName})${nameChars}(?:\\s[^<>\\n]{0,100}?)?[|｜]?(?:>|&gt;)` +
    `|\\[/?think(?:ing)?\\]|◁/?think(?:ing)?▷|<unused\\d{1,3}>(?:thought\\b)?`,
  "gi",
);
const isClosing = ([tag]: RegExpExecArray): boolean =>
  /^(?:&lt;|\W){1,8}(?:\/|end[_▁-])/i.test(tag) || /^<unused\d+>$/i.test(tag);
/** A tag in backticks is a mention; a name like `<ThinkingPanel>`, or an empty element, is code. */
const isMention = (text: string, { index, 0: tag }: RegExpExecArray): boolean =>
  text[index - 1] === "`" || tag.endsWith("/>") || /^\W{1,4}[A-Z][a-z]+[A-Z]/.test(tag);
const thoughtFence = new RegExp(`^[ \\t]*\`\`\`[ \\t]*(?:${thought})\\b[^]*?(?:^[ \\t]*\`\`\`[ \\t]*$|(?![^]))`, "gim");

function withoutReasoning(text: string): string {
  const bare = withoutFirstAside(text.replace(thoughtFence, "").trim());
  const tags = [...bare.matchAll(thoughtTag)].filter((tag) => !isMention(bare, tag));
  const lastClosing = tags.findLast(isClosing)?.index ?? -1;
  let kept = "";
  let from = 0;
  let isOpen = false;
  /** Opening tags inside reasoning: as many closing tags may follow its end. */
  let nested = 0;
  for (const tag of tags) {
    const end = tag.index + tag[0].length;
    if (!isClosing(tag)) {
      if (isOpen) nested++;
      else if (tag.index < lastClosing || isAtLineStart(bare, tag.index)) {
        kept += bare.slice(from, tag.index);
        isOpen = true;
      }
    } else if (isOpen) {
      isOpen = false;
      from = end;
    } else if (nested > 0 || isAtLineStart(bare, tag.index) || isAtLineEnd(bare, end)) {
      // It was opened further out, or in the prompt, so everything before it is reasoning.
      kept = "";
      from = end;
      nested = Math.max(0, nested - 1);
    }
  }
  if (!isOpen) return kept + bare.slice(from);
  // Reasoning that never ends, unless a wrapper inside it marks the summary.
  const wrapped = wrapperIn(bare, from);
  return wrapped === null ? kept : bare.slice(wrapped.index);
}

const wrappers = "summary|final|final_answer|answer|output|response|memory|content";
const firstAside = new RegExp(
  `^(?:(?:>[^\\n]*(?:\\n|$))+|<!--[^]*?-->|<(?!(?:${wrappers})>)([a-z][\\w:-]{0,40})>[^]*?</\\1>)`,
  "i",
);

/** Removes a quote, a comment or an element at the beginning that is reasoning. */
function withoutFirstAside(text: string): string {
  const aside = firstAside.exec(text)?.[0] ?? "";
  const inside = aside.replace(/^[> \t]+|<[!/]?[\w:-]{1,40}>?|-->/gm, "\n").trim();
  return thinksAloud(inside) ? text.slice(aside.length) : text;
}

/** Removes special tokens at either end. */
const withoutMarks = (text: string): string =>
  text
    .trim()
    .replace(/^(?:<[|｜][\w▁]{1,40}[|｜]>\s{0,8}){1,4}/, "")
    .replace(/(?:\s{0,8}<[|｜][\w▁]{1,40}[|｜]>){1,4}$/, "");

const isAtLineStart = (text: string, at: number): boolean =>
  /(?:^|\n)[ \t*_>]{0,8}$/.test(text.slice(Math.max(0, at - 9), at));
const isAtLineEnd = (text: string, at: number): boolean => /^[ \t*_]{0,8}(?:\n|$)/.test(text.slice(at, at + 9));

const wrapper = new RegExp(`^[ \\t]*<(${wrappers})(?:\\s[^<>\\n]{0,300})?>`, "gim");

function wrapperIn(text: string, from: number): RegExpExecArray | null {
  wrapper.lastIndex = from;
  return wrapper.exec(text);
}

/** Enough for a wrapper in a wrapper in a fence. */
const wrappersMax = 3;

function unwrap(text: string): string {
  let inner = text.trim();
  for (let layer = 0; layer < wrappersMax; layer++) {
    const fenced = /^```[\w-]*\n([^]*?)\n?```$/.exec(inner)?.[1];
    const outer = fenced ?? withoutWrapper(inner);
    if (outer === inner) break;
    inner = outer.trim();
  }
  return inner;
}

/** Removes the tags around a summary. Tags further in belong to its text. */
function withoutWrapper(text: string): string {
  const opening = wrapperIn(text, 0);
  if (opening === null) return text;
  const before = text.slice(0, opening.index).trim();
  if (before.length > openerCharsMax && !thinksAloud(before)) return text;
  const start = opening.index + opening[0].length;
  const end = [...text.matchAll(new RegExp(`</${opening[1]}>`, "gi"))].at(-1)?.index ?? -1;
  if (end < start) return before === "" ? text.slice(start) : text;
  // The footer may come after the wrapper, as the last line.
  const after = text.slice(end);
  const footer = [...after.matchAll(footerStart)].at(-1)?.index ?? after.length;
  return `${text.slice(start, end).trim()}\n\n${after.slice(footer)}`;
}

const openerCharsMax = 200;

/** `Here is the summary:`, `## Summary`: announcements before a summary. */
const announcements = [
  new RegExp(
    `^(?:here(?:${is}| are)|below is|this is|the following is|i(?:['’]ve| have| will|['’]ll)|let me)\\b` +
      `(?=(?:(?!:\\s)[^\\n]){0,120}?${summarising})[^\\n]{1,160}?:[*_]*(?=\\s|$)\\s*`,
    "i",
  ),
  /^[#*_ \t]*(?:(?:the|final|condensed|conversation|updated)\s+){0,3}summary[*_ \t]*(?::[*_]*\s*|\n+)/i,
  /^(?:(?:好的|好)[，,。！!]\s{0,4})?(?:(?:以下|下面|这|這)(?:是|为|為)[^\n：:]{0,40})?(?:摘要|总结|總結)[^\n：:]{0,10}[：:]\s*/,
];

const withoutAnnouncement = (text: string): string =>
  announcements.reduce((rest, announcement) => rest.replace(announcement, ""), text);

const summaryNouns = "summary|摘要|总结|總結|要約|요약|zusammenfassung|résumé|resumen";

/** Where reasoning ends and the summary begins. */
const summaryMark = new RegExp(
  `^[#*_ \\t]*(?:(?:the|my|here${is}(?: the| my)?|now|final|condensed|draft|conversation)[ \\t]+){0,3}` +
    `(?:${summaryNouns}|final answer|answer)[*_ \\t]*(?:[:：][*_]*|$)`,
  "gim",
);
const ruler = /^[ \t]*(?:-{3,}|\*{3,}|={3,})[ \t]*$/gm;

/** Second thoughts inside a summary. */
const secondThought =
  /^(?:wait|hmm{1,9})\b[,.…!]{1,3} (?:let me|i (?:should|need|must)|i['’]ll)\b[^\n]*(?:\n[^\n]+)*/gim;

function withoutPreamble(text: string): string {
  const greeted = text.replace(greeting, "");
  const rest = withoutAnnouncement(greeted);
  if (!thinksAloud(rest === greeted ? text : rest)) return rest.replace(secondThought, "");
  const mark = [...rest.matchAll(summaryMark)].at(-1) ?? [...rest.matchAll(ruler)].at(-1);
  return mark === undefined ? "" : withoutAnnouncement(rest.slice(mark.index + mark[0].length).trim());
}
