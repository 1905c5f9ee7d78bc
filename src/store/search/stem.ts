/** Stems English words by Porter's algorithm, so that "migrations" and "migrating" match. */

type Suffix = readonly [suffix: string, replacement: string];

/** Suffixes, each with its replacement after the dash, by their last letter but one. Only the first that fits counts. */
const suffixesOf = (table: string): ReadonlyMap<string, readonly Suffix[]> =>
  Map.groupBy(
    table
      .trim()
      .split(/\s+/)
      .map((pair): Suffix => {
        const [suffix = "", replacement = ""] = pair.split("-");
        return [suffix, replacement];
      }),
    ([suffix]) => suffix.at(-2) ?? "",
  );

const step2 = suffixesOf(`
  ational-ate tional-tion enci-ence anci-ance izer-ize logi-log bli-ble alli-al entli-ent eli-e ousli-ous
  ization-ize ation-ate ator-ate alism-al iveness-ive fulness-ful ousness-ous aliti-al iviti-ive biliti-ble`);
const step3 = suffixesOf("ical-ic ness- icate-ic iciti-ic ful- ative- alize-al");
const step4 = suffixesOf(
  "al- ance- ence- er- ic- able- ible- ant- ement- ment- ent- ion- ou- ism- ate- iti- ous- ive- ize-",
);

const lengthMin = 3;
const lengthMax = 64;
/** The stem of a lowercase word. It shares every letter but its last with the word. */
export const stem = (word: string): string =>
  word.length < lengthMin || word.length > lengthMax ? word : porter(word);

/**
 * Known words of up to 12 letters, in a table that fits a processor's cache, since a Map took half the time of indexing.
 * A slot has the letters of a word, the length of its stem and the last letter of that. A word may replace another.
 */
const lettersMax = 12;
const slots = new Int32Array(2 ** 16 * 4);

/** No rule applies to words that end in these. */
const isFinal = new Uint8Array(128);
for (const letter of "abfhjkopqvwxz0123456789") isFinal[letter.charCodeAt(0)] = 1;

/** Stems the lowercase ASCII word in bytes `from` to `to` of a text in place; returns where the stem ends. */
export function stemBytes(text: Buffer, from: number, to: number): number {
  const length = to - from;
  if (length < lengthMin || length > lengthMax || isFinal[text[to - 1] ?? 0] === 1) return to;
  let [one, two, three] = [0, 0, 0];
  for (let at = 0; at < length && at < lettersMax; at++) {
    const letter = (text[from + at] ?? 0) << ((at & 3) * 8);
    if (at < 4) one |= letter;
    else if (at < 8) two |= letter;
    else three |= letter;
  }
  const hash = Math.imul(one, 0x9e3779b1) ^ Math.imul(two, 0x85ebca6b) ^ Math.imul(three, 0xc2b2ae35);
  // A word is in one of two slots.
  const first = ((hash ^ (hash >>> 15)) & 0xffff) * 4;
  const at = isAt(first, one, two, three) ? first : first ^ 4;
  if (length <= lettersMax && isAt(at, one, two, three)) {
    const known = slots[at + 3] ?? 0;
    text[from + (known >> 8) - 1] = known & 255;
    return from + (known >> 8);
  }
  const end = from + text.write(porter(text.toString("latin1", from, to)), from, "latin1");
  if (length <= lettersMax)
    slots.set([one, two, three, ((end - from) << 8) | (text[end - 1] ?? 0)], slots[first] === 0 ? first : at);
  return end;
}

const isAt = (at: number, one: number, two: number, three: number): boolean =>
  slots[at] === one && slots[at + 1] === two && slots[at + 2] === three;

function porter(word: string): string {
  let stem = word;
  if (stem.endsWith("s")) {
    if (stem.endsWith("es"))
      stem = stem.slice(
        0,
        (stem.length > 4 && stem.endsWith("sses")) || (stem.length > 3 && stem.endsWith("ies")) ? -2 : -1,
      );
    else if (!stem.endsWith("ss")) stem = stem.slice(0, -1);
  }
  if (stem.length > 3 && stem.endsWith("eed")) {
    if (measure(stem.slice(0, -3)) > 0) stem = stem.slice(0, -1);
  } else if (stem.length > 2 && stem.endsWith("ed") && hasVowel(stem.slice(0, -2))) stem = tidy(stem.slice(0, -2));
  else if (stem.length > 3 && stem.endsWith("ing") && hasVowel(stem.slice(0, -3))) stem = tidy(stem.slice(0, -3));
  if (stem.endsWith("y") && hasVowel(stem.slice(0, -1))) stem = `${stem.slice(0, -1)}i`;

  stem = replaceSuffix(stem, step2, (rest) => measure(rest) > 0);
  stem = replaceSuffix(stem, step3, (rest) => measure(rest) > 0);
  stem = replaceSuffix(stem, step4, (rest, suffix) => measure(rest) > 1 && (suffix !== "ion" || /[st]$/.test(rest)));

  if (stem.endsWith("e")) {
    const rest = stem.slice(0, -1);
    const m = measure(rest);
    if (m > 1 || (m === 1 && !endsShort(rest))) stem = rest;
  }
  return stem.endsWith("ll") && measure(stem.slice(0, -1)) > 1 ? stem.slice(0, -1) : stem;
}

/** Completes what is left after -ed or -ing: conflat → conflate, hopp → hop, fil → file. */
function tidy(rest: string): string {
  if (rest.length > 2 && /(?:at|bl|iz)$/.test(rest)) return `${rest}e`;
  const last = rest.at(-1) ?? "";
  if (!"aeioulsz".includes(last) && last === rest.at(-2)) return rest.slice(0, -1);
  return measure(rest) === 1 && endsShort(rest) ? `${rest}e` : rest;
}

function replaceSuffix(
  word: string,
  suffixes: ReadonlyMap<string, readonly Suffix[]>,
  applies: (rest: string, suffix: string) => boolean,
): string {
  for (const [suffix, replacement] of suffixes.get(word.at(-2) ?? "") ?? []) {
    if (word.length <= suffix.length || !word.endsWith(suffix)) continue;
    const rest = word.slice(0, -suffix.length);
    return applies(rest, suffix) ? rest + replacement : word;
  }
  return word;
}

/** Whether a letter is a vowel; y is a vowel after a consonant. */
const isVowel = (letter: string, isAfterConsonant: boolean): boolean =>
  letter === "y" ? isAfterConsonant : "aeiou".includes(letter);

/** How often a vowel is followed by a consonant. */
function measure(word: string): number {
  let [count, before] = [0, true];
  for (let at = 0; at < word.length; at++) {
    const vowel = isVowel(word.charAt(at), at > 0 && !before);
    if (!vowel && before && at > 0) count += 1;
    before = vowel;
  }
  return count;
}

/** Here every y counts as a vowel, unless it is the first letter. */
const hasVowel = (word: string): boolean => /[aeiou]|.y/s.test(word);

/** Consonant, vowel, consonant, and the last is not w, x or y. */
function endsShort(word: string): boolean {
  let [first, second, third] = [true, true, true];
  for (let at = 0; at < word.length; at++)
    [first, second, third] = [second, third, isVowel(word.charAt(at), at > 0 && !third)];
  return word.length > 2 && !/[wxy]$/.test(word) && !third && second && !first;
}
