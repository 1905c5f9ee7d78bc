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
/** Longer words may be slices that would keep the whole text they were cut from in memory. */
const rememberedLength = 12;
const rememberedMax = 50_000;
const remembered = new Map<string, string>();

/** The stem of a lowercase word. It shares every letter but its last with the word. */
export function stem(word: string): string {
  if (word.length < lengthMin || word.length > lengthMax) return word;
  if (word.length > rememberedLength) return porter(word);
  let known = remembered.get(word);
  if (known === undefined) {
    if (remembered.size >= rememberedMax) remembered.clear();
    remembered.set(word, (known = porter(word)));
  }
  return known;
}

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

/** Whether each letter is a vowel; y is a vowel after a consonant. */
function vowels(word: string): readonly boolean[] {
  const are: boolean[] = [];
  for (const letter of word) are.push("aeiou".includes(letter) || (letter === "y" && are.at(-1) === false));
  return are;
}

/** How often a vowel is followed by a consonant. */
function measure(word: string): number {
  const are = vowels(word);
  return are.filter((is, at) => !is && are[at - 1] === true).length;
}

/** Here every y counts as a vowel, unless it is the first letter. */
const hasVowel = (word: string): boolean => /[aeiou]|.y/s.test(word);

/** Consonant, vowel, consonant, and the last is not w, x or y. */
function endsShort(word: string): boolean {
  const [first, second, third] = vowels(word).slice(-3);
  return !/[wxy]$/.test(word) && third === false && second === true && first === false;
}
