/**
 * Parses a page of Markdown into its blocks, the commands in them and the output shown, and compares output with a run.
 */

export interface Block {
  /** `sh`, `ts`, `json` …; empty if absent. */
  readonly language: string;
  readonly text: string;
  /** Its first line within the page, counted from 1. */
  readonly line: number;
}

export interface Step {
  /** The command as typed, without remarks to the reader. */
  readonly command: string;
  /** The output below it; null where the page shows none. */
  readonly shown: string | null;
  readonly line: number;
  /** How many lines there are below it up to the next command, or to the end of its block. */
  readonly below: number;
}

export function blocksOf(page: string): readonly Block[] {
  const blocks: Block[] = [];
  let open: { language: string; line: number; lines: string[] } | null = null;
  for (const [index, line] of page.split("\n").entries()) {
    const fence = /^```(\w*)$/.exec(line);
    if (open === null) {
      if (fence !== null) open = { language: fence[1] ?? "", line: index + 2, lines: [] };
    } else if (line === "```") {
      blocks.push({ language: open.language, text: open.lines.join("\n"), line: open.line });
      open = null;
    } else open.lines.push(line);
  }
  return blocks;
}

/** Every line of an `sh` block, and in other blocks every line after `$ `, with what follows up to the next. */
export function stepsOf(page: string): readonly Step[] {
  return blocksOf(page).flatMap(({ language, text, line: first }) => {
    const lines = text.split("\n").map((said, index) => ({ said, line: first + index }));
    if (language === "sh") {
      return lines.flatMap(({ said, line }) => {
        const command = withoutComment(said);
        return command === "" ? [] : [{ command, shown: null, line, below: 0 }];
      });
    }
    const starts = lines.flatMap(({ said }, index) => (said.startsWith("$ ") ? [index] : []));
    return starts.map((start, nth) => {
      const { said = "", line = first } = lines[start] ?? {};
      const below = lines.slice(start + 1, starts[nth + 1] ?? lines.length).map((each) => each.said);
      const shown = below.join("\n").trim() || null;
      return { command: withoutComment(said.slice(2)), shown, line, below: below.length };
    });
  });
}

const withoutComment = (line: string): string => line.replace(/(^|\s+)#\s.*$/, "").trim();

/** Its words, as a shell splits them; only what pages need: quotes, and no variables, pipes or globs. */
export const wordsOf = (command: string): readonly string[] =>
  [...command.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)].map(([word]) =>
    word.replace(/'([^']*)'|"([^"]*)"/g, (_, single: string | undefined, double: string | undefined) =>
      String(single ?? double),
    ),
  );

/** Inline code, outside of blocks. */
export const spansOf = (page: string): readonly string[] =>
  [...page.replace(/^```\w*$[^]*?^```$/gm, "").matchAll(/`([^`\n]+)`/g)].map(([, span = ""]) => span);

// ── Comparing ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** What differs every time and may be named again: a new id, a backup, a folder. */
const named =
  /\b(?:sum|file)_[0-9a-f]{16}\b|\blcm\.db\.(?:backup|set-aside)-\d{8}T\d{6}Z(?:-older)?(?:-\d+)?\b|\blcm-demo-\w+\b/;
/** What differs every time and does not matter: durations, file sizes, the minute of today. */
const passing = /\b\d[\d.,]* (?:ms|s|B|KB|MB)\b|(?<=\b11-16[ T])\d\d:\d\d\b|\b127\.0\.0\.1:\d+\b/;
const changing = new RegExp(`(${named.source})|(?:${passing.source})`, "g");

/** The page's name for it, and its name in this run. */
export type Names = Map<string, string>;

/** Puts this run's names into a command. */
export const withNames = (command: string, names: Names): string =>
  command.replace(new RegExp(named, "g"), (name) => names.get(name) ?? name);

/** Whether this was printed, and under which names. Blanks and line ends count as one; a line `…` matches any lines. */
export function isSaid(shown: string, said: string, names: Names): boolean {
  const found: string[] = [];
  const lines = shown.split("\n").map((line) => line.trim());
  const pieces = lines
    .join("\n")
    .split(/(?:^|\n)…(?:\n|$)/)
    .map((piece) => patternOf(piece, names, found));
  const match = new RegExp(`^\\s*${pieces.join("(?:\\s*\\n[^]*?\\n\\s*|\\s*)")}\\s*$`, "u").exec(`\n${said}\n`);
  if (match === null) return false;
  for (const [index, name] of found.entries()) names.set(name, match[index + 1] ?? name);
  return true;
}

/** A group for each new name; it goes to the end of `found`. */
function patternOf(text: string, names: Names, found: string[]): string {
  let [pattern, at] = ["", 0];
  for (const { 0: same, 1: name, index } of text.matchAll(changing)) {
    pattern += literal(text.slice(at, index));
    at = index + same.length;
    const known = name === undefined ? undefined : names.get(name);
    if (name === undefined) pattern += `(?:${passing.source})`;
    else if (known !== undefined) pattern += literal(known);
    else if (found.includes(name)) pattern += `\\${found.indexOf(name) + 1}`;
    else pattern += `(${named.source})`;
    if (name !== undefined && known === undefined && !found.includes(name)) found.push(name);
  }
  return pattern + literal(text.slice(at));
}

const literal = (text: string): string =>
  text
    .split(/\s+/)
    .map((part) => part.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&"))
    .join("\\s+");
