/**
 * Generates the mutants of a source file. A mutant is one span of the original text and its replacement; the spans come
 * from the syntax tree, so types, imports, comments and error texts stay unchanged.
 *
 * Conditions become true or false; comparisons move by one or reverse; an operand of && || ?? goes; numbers, booleans
 * and arithmetic change; a statement or a link of a call chain goes; a returned value becomes empty. In SQL a condition
 * goes, an order reverses, a limit moves.
 *
 * Redundant mutants are not made: a test that distinguishes a condition from `true` also distinguishes it from its
 * opposite, one that distinguishes `a && b` from `a` also distinguishes it from `a || b`, and `if (false) return`
 * equals the early return removed.
 */

import { parseSync, visitorKeys } from "oxc-parser";
import type { Node } from "oxc-parser";

export interface Mutant {
  readonly file: string;
  readonly line: number;
  readonly start: number;
  readonly end: number;
  readonly original: string;
  readonly replacement: string;
}

type Replace = (start: number, end: number, replacement: string) => void;
interface Span {
  readonly start: number;
  readonly end: number;
}

export function mutantsOf(file: string, source: string): readonly Mutant[] {
  const { program, errors } = parseSync(file, source);
  if (errors.length > 0) throw new SyntaxError(`${file}: ${errors[0]?.message}`);
  const found = new Map<string, Mutant>();
  const replace: Replace = (start, end, replacement) => {
    const original = source.slice(start, end);
    if (original === replacement) return;
    const line = source.slice(0, start).split("\n").length;
    found.set(`${start}:${end}:${replacement}`, { file, line, start, end, original, replacement });
  };
  /** What needs no mutant of its own. */
  const proved = new Set<Node>();
  visit(program, (node) => {
    mutateNode(node, source, replace, proved);
    if (file.includes("/store/")) mutateSql(node, source, replace);
  });
  return [...found.values()];
}

/** A tuned number is halved or doubled: no promise depends on one more or less. */
const countMax = 20;

// ── The tree ─────────────────────────────────────────────────────────────────────────────────────────────────────────

function visit(node: Node, enter: (node: Node) => void): void {
  if (isLeftAlone(node)) return;
  enter(node);
  const fields = new Map<string, unknown>(Object.entries(node));
  for (const key of visitorKeys[node.type] ?? []) {
    const value = fields.get(key);
    for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) visit(child, enter);
  }
}

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";

/** Types and imports; error texts, and assertions against bugs. */
function isLeftAlone(node: Node): boolean {
  if (node.type === "TSAsExpression" || node.type === "TSSatisfiesExpression") return false;
  if (node.type.startsWith("TS") || node.type === "ImportDeclaration") return true;
  if (node.type === "NewExpression") return nameOf(node.callee).endsWith("Error");
  return node.type === "CallExpression" && /^(assert|describe)$/.test(nameOf(node.callee));
}

const nameOf = (node: Node): string => (node.type === "Identifier" ? node.name : "");

const swaps: Readonly<Record<string, string>> = {
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  "===": "!==",
  "!==": "===",
  "+": "-",
  "-": "+",
  "*": "/",
  "/": "*",
  "%": "*",
  "+=": "-=",
  "-=": "+=",
};

const methodSwaps: Readonly<Record<string, string>> = {
  min: "max",
  max: "min",
  floor: "ceil",
  ceil: "floor",
  startsWith: "endsWith",
  endsWith: "startsWith",
  some: "every",
  every: "some",
  find: "findLast",
  findLast: "find",
  indexOf: "lastIndexOf",
  push: "unshift",
};

/** These return the same kind of value they were called on, so the call can be left out. */
const links =
  /^(filter|slice|toSorted|toReversed|flat|trim|trimEnd|trimStart|toLowerCase|normalize|replaceAll|subarray)$/;

function mutateNode(node: Node, source: string, replace: Replace, proved: Set<Node>): void {
  const text = (part: Span): string => source.slice(part.start, part.end);
  switch (node.type) {
    case "IfStatement":
    case "ConditionalExpression":
    case "WhileStatement": {
      const { test } = node;
      if (node.type !== "WhileStatement") replace(test.start, test.end, "true");
      replace(test.start, test.end, "false");
      proved.add(test).add(node.type === "IfStatement" ? node.consequent : test);
      return;
    }
    case "BinaryExpression":
    case "LogicalExpression":
    case "AssignmentExpression": {
      const { left, right, operator } = node;
      const isText = operator.startsWith("+") && [left, right].some(({ start }) => /["'`]/.test(source[start] ?? ""));
      const at = source.indexOf(operator, left.end);
      const other = swaps[operator];
      const isAnswered = proved.has(node) && /[!=]==/.test(operator);
      if (other !== undefined && !isText && !isAnswered) replace(at, at + operator.length, other);
      if (node.type !== "LogicalExpression") return;
      if (text(right) !== "null") replace(node.start, node.end, text(left));
      replace(node.start, node.end, text(right));
      return;
    }
    case "UnaryExpression":
      if (node.operator === "!" && !proved.has(node)) replace(node.start, node.end, text(node.argument));
      return;
    case "Literal":
      if (typeof node.value === "boolean") replace(node.start, node.end, String(!node.value));
      if (typeof node.value === "number") {
        const { value } = node;
        const others = Math.abs(value) <= countMax ? [value + 1, value - 1] : [value * 2, Math.floor(value / 2)];
        for (const other of others) if (other >= 0) replace(node.start, node.end, String(other));
      }
      return;
    case "ExpressionStatement":
      if (!proved.has(node) && !isLeftAlone(node.expression)) replace(node.start, node.end, ";");
      return;
    case "ThrowStatement":
      if (!proved.has(node)) replace(node.start, node.end, ";");
      return;
    case "ReturnStatement":
      if (node.argument !== null) mutateResult(node.argument, replace);
      return;
    case "ArrowFunctionExpression":
      if (node.body.type !== "BlockStatement") mutateResult(node.body, replace);
      return;
    case "MemberExpression":
    case "CallExpression":
      mutateLink(node, source, replace);
      break;
    default:
  }
}

function mutateResult(node: Node, replace: Replace): void {
  const inner = node.type === "ParenthesizedExpression" ? node.expression : node;
  if (inner.type === "ArrayExpression" && inner.elements.length > 0) replace(inner.start, inner.end, "[]");
  if (inner.type === "TemplateLiteral") replace(inner.start, inner.end, '""');
  if (inner.type !== "CallExpression" || inner.callee.type !== "MemberExpression") return;
  if (/^(map|flatMap|filter|toSorted)$/.test(nameOf(inner.callee.property))) replace(inner.start, inner.end, "[]");
  if (/^(join)$/.test(nameOf(inner.callee.property))) replace(inner.start, inner.end, '""');
}

function mutateLink(node: Node & Span, source: string, replace: Replace): void {
  if (node.type === "MemberExpression") {
    const { object, property, optional, computed } = node;
    const at = source.indexOf("?.", object.end);
    if (optional) replace(at, at + 2, computed ? "" : ".");
    const other = methodSwaps[nameOf(property)];
    if (other !== undefined && source[property.end] === "(") replace(property.start, property.end, other);
  } else if (node.type === "CallExpression" && node.callee.type === "MemberExpression") {
    const { object, property } = node.callee;
    if (links.test(nameOf(property))) replace(node.start, node.end, source.slice(object.start, object.end));
  }
}

// ── SQL ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

const sqlSwaps: readonly (readonly [pattern: RegExp, other: (found: string) => string])[] = [
  [/\bASC\b/g, () => "DESC"],
  [/\bDESC\b/g, () => "ASC"],
  [/ORDER BY [\w.]+(?! ?(?:ASC|DESC|[\w.(,]))/g, (found) => `${found} DESC`],
  [/(?<= )(?:<=|>=)(?= )/g, (found) => found.slice(0, 1)],
  [/(?<= )[<>](?= )/g, (found) => `${found}=`],
  [/(?<= )\+(?= )/g, () => "-"],
  [/(?<= )-(?= )/g, () => "+"],
  [/\bmin(?=\()/gi, () => "max"],
  [/\bmax(?=\()/gi, () => "min"],
  // Callers of `LIMIT 1` take the first row anyway.
  [/\bLIMIT (?!1\b)[\w.]+/g, (found) => `${found} + 1`],
  [/\bIS NOT NULL\b/g, () => "IS NULL"],
  [/\bIS NULL\b/g, () => "IS NOT NULL"],
  [/\bNOT EXISTS\b/g, () => "EXISTS"],
];

/** A condition reaches to the next keyword of its own level. */
const conditionEnd = /^(?:AND|OR|ORDER BY|GROUP BY|LIMIT|RETURNING|UNION|ON CONFLICT|DO|WHERE|JOIN|LEFT JOIN|THEN)\b/;

function mutateSql(node: Node, source: string, replace: Replace): void {
  if (node.type !== "TemplateLiteral" && !(node.type === "Literal" && typeof node.value === "string")) return;
  // A placeholder counts as one word of the statement.
  let words = source.slice(node.start + 1, node.end - 1);
  for (const { start, end } of node.type === "TemplateLiteral" ? node.expressions : []) {
    const [from, to] = [start - node.start - 3, end - node.start];
    words = words.slice(0, from) + "v".repeat(to - from) + words.slice(to);
  }
  if (!/\b(?:SELECT|WHERE|ORDER BY|UPDATE \w+ SET|DELETE FROM)\b/.test(words) || /\bCREATE\b/.test(words)) return;
  const origin = node.start + 1;
  for (const [pattern, other] of sqlSwaps) {
    for (const { 0: found, index } of words.matchAll(pattern)) {
      const at = origin + index;
      replace(at, at + found.length, other(source.slice(at, at + found.length)));
    }
  }
  for (const { 0: found, index } of words.matchAll(
    /\b(?:WHERE|(?<!BETWEEN \S+ )AND|(?<!INSERT )OR|ON)\s+(?!CONFLICT)/g,
  )) {
    const from = index + found.length;
    const to = endOfCondition(words, from);
    if (to > from) replace(origin + from, origin + to, found.startsWith("OR") ? "0" : "1");
  }
}

function endOfCondition(words: string, from: number): number {
  let depth = 0;
  for (let at = from; at < words.length; at++) {
    if (words[at] === "(") depth++;
    else if (words[at] === ")" && depth-- === 0) return at;
    else if (depth === 0 && /\s/.test(words[at - 1] ?? "") && conditionEnd.test(words.slice(at, at + 12))) {
      // The second half of BETWEEN belongs to the same condition.
      if (!/BETWEEN \S+\s$/.test(words.slice(from, at))) return from + words.slice(from, at).trimEnd().length;
    }
  }
  return from + words.slice(from).trimEnd().length;
}
