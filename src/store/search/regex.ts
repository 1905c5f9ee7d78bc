/** Compiles a regular expression and derives a text that every match contains, so that SQL can skip other rows. */

import { LcmError } from "../../core/base/errors.ts";

export interface Pattern {
  readonly regex: RegExp;
  /** A LIKE pattern (escaped by `\`) that every matching text satisfies; `%` if none is certain. */
  readonly like: string;
  /** What every matching text contains, both in lower case; empty if nothing is certain. */
  readonly literal: string;
  /** Whether no match can cross a line end, so that lines can be searched one by one. */
  readonly isOfOneLine: boolean;
}

/** Smart case: a pattern without capitals ignores case. `^` and `$` match at line ends. */
export function compilePattern(pattern: string): Pattern {
  if (pattern === "") throw invalid(pattern, "it is empty");
  const flags = hasCapital(pattern) ? "m" : "im";
  const isOfOneLine = staysInLine(pattern);
  try {
    const regex = new RegExp(pattern, `${flags}u`);
    const literal = requiredLiteral(pattern) ?? "";
    return { regex, like: likeOf(literal), literal: withoutFolding(literal), isOfOneLine };
  } catch (strict) {
    try {
      // Loose syntax, such as a meaningless escape, is valid only without the flag u. Nothing is certain about it.
      return { regex: new RegExp(pattern, flags), like: "%", literal: "", isOfOneLine };
    } catch {
      throw invalid(pattern, reasonOf(strict), strict); // The strict reason is clearer.
    }
  }
}

const reasonOf = (error: unknown): string =>
  error instanceof Error ? error.message.replace(/^.*\/[a-z]*: /s, "") : String(error);

const invalid = (pattern: string, reason: string, cause?: unknown): LcmError =>
  new LcmError("invalid", `invalid regular expression ${JSON.stringify(pattern)}: ${reason}`, {
    cause,
    hint: String.raw`escape brackets and dots, such as: foo\(bar\.baz; or search for words instead`,
  });

/** Capitals in escapes and group names do not count: \W, \P{Lu}, (?<Name>…). */
const hasCapital = (pattern: string): boolean =>
  /\p{Lu}/u.test(
    pattern.replace(/\\(?:[pPu]\{[^}]*\}|k<[^>]*>|u[0-9a-f]{4}|x[0-9a-f]{2}|c[a-z]|.)|\(\?<[^>=!]+>/gisu, ""),
  );

/** Only characters, classes without line ends, and groups without look-around. */
const staysInLine = (pattern: string): boolean =>
  !/[\p{Cc}\u2028\u2029]|\[\^|\(\?(?!:)|\\(?![dwb]|[^\p{L}\p{N}])/u.test(pattern);

/** The longest run of ASCII characters that every match contains; null where that is not certain. */
export function requiredLiteral(pattern: string): string | null {
  let at = 0;
  const take = (expression: RegExp): RegExpExecArray | null => {
    expression.lastIndex = at;
    const found = expression.exec(pattern);
    if (found !== null) at += found[0].length;
    return found;
  };

  /** Nothing is certain about alternatives. */
  const readAlternatives = (): string => {
    const first = readSequence();
    let alone = true;
    while (take(/\|/y)) {
      readSequence();
      alone = false;
    }
    return alone ? first : "";
  };

  const readSequence = (): string => {
    let longest = "";
    let run = "";
    const endRun = (next = ""): void => {
      longest = longer(longest, longer(run, next));
      run = "";
    };
    while (at < pattern.length && pattern[at] !== "|" && pattern[at] !== ")") {
      const atom = readAtom();
      const repeat = take(/(?:[*?]|\{0+(?:,\d*)?\}|(?<atLeastOnce>\+|\{\d+(?:,\d*)?\}))\??/y);
      const occurs = repeat === null || repeat.groups?.["atLeastOnce"] !== undefined;
      if (atom.kind === "character" && occurs) run += atom.text;
      if (atom.kind !== "character" || repeat !== null) endRun(atom.kind === "group" && occurs ? atom.text : "");
    }
    endRun();
    return longest;
  };

  type Atom = { readonly kind: "character" | "group" | "other"; readonly text: string };
  const other: Atom = { kind: "other", text: "" };

  const readAtom = (): Atom => {
    if (take(/\[(?:\\.|[^\]\\])*\]/sy)) return other;
    if (take(/\\(?:[pPu]\{[^}]*\}|u[0-9a-f]{4}|x[0-9a-f]{2}|c[a-z]|k<[^>]*>|\d+|[a-z])/iy)) return other;
    const group = take(/\((?:\?(?<kind><?[=!]|:|<[^>]+>|[a-z-]*:))?/y);
    if (group !== null) {
      const text = readAlternatives();
      take(/\)/y);
      const kind = group.groups?.["kind"];
      // A look-around is not part of the match; a group with flags may change the case.
      return kind === undefined || kind === ":" || /^<[^=!]/.test(kind) ? { kind: "group", text } : other;
    }
    const single = take(/(?<escape>\\)?(?<character>[\s\S])/y)?.groups;
    const text = single?.["character"] ?? "";
    const isLiteral = /[ -~]/.test(text) && (single?.["escape"] !== undefined || !/[.^$]/.test(text));
    return isLiteral ? { kind: "character", text } : other;
  };

  const literal = readAlternatives();
  return at === pattern.length && literal !== "" ? literal : null;
}

const longer = (one: string, other: string): string => (other.length > one.length ? other : one);

/**
 * The longest piece without s and k: ſ matches s and the Kelvin sign k when case is ignored, and what makes a text lower
 * case may leave them unchanged.
 */
const withoutFolding = (literal: string): string => literal.toLowerCase().split(/[ks]/).reduce(longer);

const literalMin = 3;
const literalMax = 64;
const byFrequency = " etaoinsrhldcumfpgwybvkxjqz";

/**
 * LIKE ignores the case of ASCII letters, so it serves both cases. A regular expression that ignores case also matches
 * ſ as s and the Kelvin sign as k, so these become wildcards. LIKE is fastest if its first character is rare.
 */
function likeOf(literal: string): string {
  const units = Array.from(literal.slice(0, literalMax).toLowerCase(), (character) =>
    /[ks]/.test(character) ? "_" : /[%_\\]/.test(character) ? `\\${character}` : character,
  );
  const rarity = (unit: string): number =>
    unit === "_" ? -1 : byFrequency.includes(unit) ? byFrequency.indexOf(unit) : byFrequency.length;
  const starts = [...units.keys()].filter((at) => units.slice(at).filter((unit) => unit !== "_").length >= literalMin);
  const start = starts.sort((one, other) => rarity(units[other] ?? "") - rarity(units[one] ?? ""))[0];
  return start === undefined ? "%" : `%${units.slice(start).join("")}%`;
}
