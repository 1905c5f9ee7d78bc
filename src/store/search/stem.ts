/**
 * Stems English words by Porter's algorithm, so that "migrations" and "migrating" match. Works on bytes, in place,
 * because every word of every message is stemmed when it is indexed.
 */

interface Rule {
  readonly suffix: Uint8Array;
  readonly replacement: Uint8Array;
}

const bytes = (letters: string): Uint8Array => Uint8Array.from(letters, (letter) => letter.charCodeAt(0));

/** Where the rules of a suffix are, by its last two letters. */
const slotOf = (before: number, last: number): number => ((before & 31) << 5) | (last & 31);

type Rules = readonly (readonly Rule[] | undefined)[];

/** Suffixes, each with its replacement after the dash. Only the first that fits counts. */
function rulesOf(table: string): Rules {
  const rules = Array.from<Rule[] | undefined>({ length: slotOf(31, 31) + 1 });
  for (const pair of table.trim().split(/\s+/)) {
    const [suffix = new Uint8Array(), replacement = new Uint8Array()] = pair.split("-").map(bytes);
    (rules[slotOf(suffix.at(-2) ?? 0, suffix.at(-1) ?? 0)] ??= []).push({ suffix, replacement });
  }
  return rules;
}

const step2 = rulesOf(`
  ational-ate tional-tion enci-ence anci-ance izer-ize logi-log bli-ble alli-al entli-ent eli-e ousli-ous
  ization-ize ation-ate ator-ate alism-al iveness-ive fulness-ful ousness-ous aliti-al iviti-ive biliti-ble`);
const step3 = rulesOf("ical-ic ness- icate-ic iciti-ic ful- ative- alize-al");
const step4 = rulesOf(
  "al- ance- ence- er- ic- able- ible- ant- ement- ment- ent- ion- ou- ism- ate- iti- ous- ive- ize-",
);

const [b = 0, a = 0, d = 0, e = 0, g = 0, i = 0, l = 0, n = 0, o = 0, s = 0, t = 0, y = 0, z = 0] =
  bytes("badegilnostyz");

/** Whether a letter is one of these, by its code. */
function among(letters: string): Uint8Array {
  const are = new Uint8Array(256);
  for (const letter of bytes(letters)) are[letter] = 1;
  return are;
}

const vowels = among("aeiou");
/** No rule applies to words that end in these, or in a letter that is not ASCII. */
const finals = among("abfhjkopqvwxz0123456789").fill(1, 128);
/** Letters whose doubling belongs to the word, or to a rule of its own. */
const doubles = among("aeioulsz");
/** Letters after which a short syllable does not count as one. */
const closers = among("wxy");

const lengthMin = 3;
const lengthMax = 64;
const scratch = new Uint8Array(lengthMax + 1);

/** The stem of a lowercase word. It shares every letter but its last with the word. */
export function stem(word: string): string {
  if (word.length > lengthMax) return word;
  for (let at = 0; at < word.length; at++) scratch[at] = Math.min(word.charCodeAt(at), 255);
  const end = stemBytes(scratch, 0, word.length);
  const last = scratch[end - 1] ?? 255;
  return last > 127 ? word.slice(0, end) : word.slice(0, end - 1) + String.fromCharCode(last);
}

/** Stems the lowercase word in bytes `from` to `to` of a text in place; returns where the stem ends. */
export function stemBytes(text: Uint8Array, from: number, to: number): number {
  if (to - from < lengthMin || to - from > lengthMax || finals[text[to - 1] ?? 0] === 1) return to;
  let end = withoutTense(text, from, withoutPlural(text, from, to));
  if (text[end - 1] === y && hasVowel(text, from, end - 1)) text[end - 1] = i;
  end = replaceSuffix(text, from, end, step2);
  end = replaceSuffix(text, from, end, step3);
  end = replaceSuffix(text, from, end, step4);
  if (text[end - 1] === e) {
    const m = measure(text, from, end - 1);
    if (m > 1 || (m === 1 && !endsShort(text, from, end - 1))) end -= 1;
  }
  return text[end - 1] === l && text[end - 2] === l && measure(text, from, end - 1) > 1 ? end - 1 : end;
}

function withoutPlural(text: Uint8Array, from: number, to: number): number {
  if (text[to - 1] !== s || text[to - 2] === s) return to;
  if (text[to - 2] !== e) return to - 1;
  const isSses = to - from > 4 && text[to - 3] === s && text[to - 4] === s;
  const isIes = to - from > 3 && text[to - 3] === i;
  return isSses || isIes ? to - 2 : to - 1;
}

/** Drops -ed and -ing, and completes what is left: conflat → conflate, hopp → hop, fil → file. */
function withoutTense(text: Uint8Array, from: number, to: number): number {
  const length = to - from;
  const isEd = length > 2 && text[to - 1] === d && text[to - 2] === e;
  if (isEd && length > 3 && text[to - 3] === e) return measure(text, from, to - 3) > 0 ? to - 1 : to;
  const isIng = length > 3 && text[to - 1] === g && text[to - 2] === n && text[to - 3] === i;
  const end = isEd ? to - 2 : to - 3;
  if (!(isEd || isIng) || !hasVowel(text, from, end)) return to;
  const before = text[end - 2] ?? 0;
  const last = text[end - 1] ?? 0;
  const needsE = (last === t && before === a) || (last === l && before === b) || (last === z && before === i);
  if (end - from > 1 && last === before && doubles[last] === 0) return end - 1;
  if (!(end - from > 2 && needsE) && !(measure(text, from, end) === 1 && endsShort(text, from, end))) return end;
  text[end] = e;
  return end + 1;
}

function replaceSuffix(text: Uint8Array, from: number, to: number, rules: Rules): number {
  const fitting = rules[slotOf(text[to - 2] ?? 0, text[to - 1] ?? 0)];
  if (fitting === undefined) return to;
  for (const { suffix, replacement } of fitting) {
    const end = to - suffix.length;
    if (end <= from || !endsWith(text, end, suffix)) continue;
    if (measure(text, from, end) <= (rules === step4 ? 1 : 0)) return to;
    if (rules === step4 && suffix.length === 3 && text[end] === i && text[end + 1] === o) {
      // -ion is dropped after s and t only.
      if (text[end - 1] !== s && text[end - 1] !== t) return to;
    }
    text.set(replacement, end);
    return end + replacement.length;
  }
  return to;
}

function endsWith(text: Uint8Array, from: number, suffix: Uint8Array): boolean {
  for (let at = suffix.length - 1; at >= 0; at--) if (text[from + at] !== suffix[at]) return false;
  return true;
}

/** How often a vowel is followed by a consonant. A y is a vowel after a consonant. */
function measure(text: Uint8Array, from: number, to: number): number {
  let count = 0;
  let before = 0;
  for (let at = from; at < to; at++) {
    const letter = text[at] ?? 0;
    const vowel = letter === y ? Number(at > from && before === 0) : (vowels[letter] ?? 0);
    if (vowel < before) count += 1;
    before = vowel;
  }
  return count;
}

/** Here every y counts as a vowel, unless it is the first letter. */
function hasVowel(text: Uint8Array, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (vowels[text[at] ?? 0] === 1 || (text[at] === y && at > from)) return true;
  return false;
}

/** Consonant, vowel, consonant, and the last is not w, x or y. */
function endsShort(text: Uint8Array, from: number, to: number): boolean {
  if (to - from < 3 || closers[text[to - 1] ?? 0] === 1) return false;
  let kinds = 7;
  for (let at = from; at < to; at++) {
    const letter = text[at] ?? 0;
    const vowel = letter === y ? Number(at > from && (kinds & 1) === 0) : (vowels[letter] ?? 0);
    kinds = (kinds << 1) | vowel;
  }
  return (kinds & 7) === 2;
}
