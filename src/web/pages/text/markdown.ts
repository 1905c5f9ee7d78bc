/**
 * Reads Markdown into a tree, which is drawn as elements: nothing in a text becomes markup, and nothing is loaded. It knows
 * what models write (headings, lists, tables, code, emphasis, links) and leaves everything else as it stands.
 */

export type Inline =
  | { readonly kind: "text" | "code"; readonly text: string }
  | { readonly kind: "strong" | "em" | "strike"; readonly inside: readonly Inline[] }
  | { readonly kind: "link"; readonly to: string; readonly inside: readonly Inline[] }
  | { readonly kind: "break" };

export type Node =
  | { readonly kind: "paragraph"; readonly inside: readonly Inline[] }
  | { readonly kind: "heading"; readonly level: number; readonly inside: readonly Inline[] }
  | { readonly kind: "code"; readonly language: string; readonly text: string }
  | { readonly kind: "quote"; readonly inside: readonly Node[] }
  | { readonly kind: "list"; readonly start: number | null; readonly items: readonly (readonly Node[])[] }
  | { readonly kind: "table"; readonly head: readonly Cell[]; readonly rows: readonly (readonly Cell[])[] }
  | { readonly kind: "rule" };

type Cell = readonly Inline[];

/** Deeper quotes and lists are plain text. */
const depthMax = 8;

export const parseMarkdown = (text: string): readonly Node[] => parseLines(text.split(/\r?\n/), 0);

const fence = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/;
const heading = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/;
const rule = /^ {0,3}([-*_])(?: *\1){2,} *$/;
const bullet = /^( {0,3})([-*+•]|\d{1,9}[.)])(?:\s+|$)/;
const quoted = /^ {0,3}> ?/;
const tableLine = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;

/** Takes a node off the beginning of the lines; returns how many it has. */
type Taker = (lines: readonly string[], at: number, depth: number) => readonly [Node, number] | null;

function parseLines(lines: readonly string[], depth: number): readonly Node[] {
  const nodes: Node[] = [];
  for (let at = 0; at < lines.length;) {
    if (lines[at]?.trim() === "") {
      at++;
      continue;
    }
    const [node, count] = takeFirst(lines, at, depth);
    nodes.push(node);
    at += count;
  }
  return nodes;
}

function takeFirst(lines: readonly string[], at: number, depth: number): readonly [Node, number] {
  for (const take of takers) {
    const taken = take(lines, at, depth);
    if (taken !== null) return taken;
  }
  return takeParagraph(lines, at);
}

const takeCode: Taker = (lines, at) => {
  const [, mark, language = ""] = fence.exec(lines[at] ?? "") ?? [];
  if (mark === undefined) return null;
  const isEnd = (line: string): boolean =>
    line.trim().startsWith(mark) && line.trim().replaceAll(mark.charAt(0), "") === "";
  const rest = lines.slice(at + 1);
  const end = rest.findIndex(isEnd);
  const text = (end < 0 ? rest : rest.slice(0, end)).join("\n");
  return [{ kind: "code", language: language.toLowerCase(), text }, (end < 0 ? rest.length : end + 1) + 1];
};

const takeHeading: Taker = (lines, at) => {
  const [, marks, words = ""] = heading.exec(lines[at] ?? "") ?? [];
  return marks === undefined ? null : [{ kind: "heading", level: marks.length, inside: parseInline(words) }, 1];
};

const takeRule: Taker = (lines, at) => (rule.test(lines[at] ?? "") ? [{ kind: "rule" }, 1] : null);

const takeQuote: Taker = (lines, at, depth) => {
  if (depth >= depthMax || !quoted.test(lines[at] ?? "")) return null;
  const end = endOf(lines, at, (line) => quoted.test(line));
  const inside = lines.slice(at, end).map((line) => line.replace(quoted, ""));
  return [{ kind: "quote", inside: parseLines(inside, depth + 1) }, end - at];
};

const takeList: Taker = (lines, at, depth) => {
  const [, , mark] = bullet.exec(lines[at] ?? "") ?? [];
  if (mark === undefined || depth >= depthMax) return null;
  const isOrdered = /\d/.test(mark);
  const items: (readonly Node[])[] = [];
  let next = at;
  while (next < lines.length) {
    const [whole, , other] = bullet.exec(lines[next] ?? "") ?? [];
    if (whole === undefined || other === undefined || /\d/.test(other) !== isOrdered) break;
    if (rule.test(lines[next] ?? "")) break;
    const indent = Math.min(whole.length, 6);
    // An item goes on over indented lines, also behind an empty one.
    let end = next + 1;
    while (end < lines.length && (isIndented(lines[end] ?? "") || isEmptyWithin(lines, end))) end++;
    const inside = [
      (lines[next] ?? "").slice(whole.length),
      ...lines.slice(next + 1, end).map((l) => outdent(l, indent)),
    ];
    items.push(parseLines(inside, depth + 1));
    next = end;
    while (lines[next]?.trim() === "" && bullet.test(lines[next + 1] ?? "")) next++;
  }
  return [{ kind: "list", start: isOrdered ? Number.parseInt(mark, 10) : null, items }, next - at];
};

const isIndented = (line: string): boolean => /^(?: {2,}|\t)\S/.test(line);
const isEmptyWithin = (lines: readonly string[], at: number): boolean =>
  lines[at]?.trim() === "" && isIndented(lines[at + 1] ?? "");
const outdent = (line: string, most: number): string => {
  const blanks = line.length - line.trimStart().length;
  return line.slice(Math.min(blanks, most));
};

const takeTable: Taker = (lines, at) => {
  if (!(lines[at] ?? "").includes("|") || !tableLine.test(lines[at + 1] ?? "")) return null;
  const end = endOf(lines, at + 2, (line) => line.includes("|"));
  const head = cellsOf(lines[at] ?? "");
  const rows = lines.slice(at + 2, end).map((line) => head.map((_, column) => cellsOf(line)[column] ?? []));
  return [{ kind: "table", head, rows }, end - at];
};

const cellsOf = (line: string): readonly Cell[] =>
  line
    .trim()
    .replace(/^\||(?<!\\)\|$/g, "")
    .split(/(?<!\\)\|/)
    .map((cell) => parseInline(cell.replaceAll("\\|", "|").trim()));

const takers: readonly Taker[] = [takeCode, takeHeading, takeRule, takeQuote, takeList, takeTable];

function takeParagraph(lines: readonly string[], at: number): readonly [Node, number] {
  const isOther = (line: string, index: number): boolean =>
    line.trim() === "" ||
    fence.test(line) ||
    heading.test(line) ||
    quoted.test(line) ||
    bullet.test(line) ||
    (line.includes("|") && tableLine.test(lines[index + 1] ?? ""));
  let end = at + 1;
  while (end < lines.length && !isOther(lines[end] ?? "", end)) end++;
  return [{ kind: "paragraph", inside: parseInline(lines.slice(at, end).join("\n")) }, end - at];
}

function endOf(lines: readonly string[], from: number, isInside: (line: string) => boolean): number {
  let end = from;
  while (end < lines.length && isInside(lines[end] ?? "")) end++;
  return end;
}

// ── Within a line ────────────────────────────────────────────────────────────────────────────────────────────────────

/** Code, links, addresses, emphasis. What is inside is read again, a few levels deep. */
const span =
  /(`+)([^`](?:.*?[^`])?)\1(?!`)|!?\[([^[\]\n]{0,1000})\]\(\s*<?([^\s()<>]{1,2000})>?(?:\s+"[^"\n]*")?\s*\)|\b(https?:\/\/[^\s<>"'`|]{0,2000}[^\s<>"'`|.,;:!?)\]*_])|\*\*(?=\S)([^\n]{0,2000}?\S)\*\*|(?<!\w)__(?=\S)([^\n]{0,2000}?\S)__(?!\w)|~~(?=\S)([^\n]{0,2000}?\S)~~|\*(?=\S)([^*\n]{0,2000}?[^\s*])\*(?!\w)|(?<!\w)_(?=\S)([^_\n]{0,2000}?[^\s_])_(?!\w)|(\n)|\\([\\`*_{}[\]()#+.!|~-])/g;

const inlineDepth = 4;

export function parseInline(text: string, depth = 0): readonly Inline[] {
  if (depth >= inlineDepth) return [{ kind: "text", text }];
  const nodes: Inline[] = [];
  let done = 0;
  for (const match of text.matchAll(span)) {
    if (match.index > done) nodes.push({ kind: "text", text: text.slice(done, match.index) });
    nodes.push(inlineOf(match, depth));
    done = match.index + match[0].length;
  }
  if (done < text.length) nodes.push({ kind: "text", text: text.slice(done) });
  return nodes;
}

function inlineOf(match: RegExpExecArray, depth: number): Inline {
  const [whole, , code, label, target, bare, strong, strong2, strike, em, em2, newline, escaped] = match;
  const inside = (words: string): readonly Inline[] => parseInline(words, depth + 1);
  if (code !== undefined) return { kind: "code", text: code };
  if (label !== undefined && target !== undefined) {
    const words = label === "" ? target : label;
    return isSafe(target) ? { kind: "link", to: target, inside: inside(words) } : { kind: "text", text: whole };
  }
  if (bare !== undefined) return { kind: "link", to: bare, inside: [{ kind: "text", text: bare }] };
  const heavy = strong ?? strong2;
  if (heavy !== undefined) return { kind: "strong", inside: inside(heavy) };
  if (strike !== undefined) return { kind: "strike", inside: inside(strike) };
  const light = em ?? em2;
  if (light !== undefined) return { kind: "em", inside: inside(light) };
  if (newline !== undefined) return { kind: "break" };
  return { kind: "text", text: escaped ?? whole };
}

/** Only these can be followed; everything else stays text. */
const isSafe = (target: string): boolean => /^(?:https?:\/\/|mailto:)/i.test(target);
