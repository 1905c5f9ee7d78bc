/**
 * Other forms of German, French and Spanish words, for queries in these languages. The index stems every word as
 * English, so a query looks for a word with each of the common endings of its language instead.
 */

const setOf = (words: string): ReadonlySet<string> => new Set(words.split(" "));

export interface Language {
  /** Words too common to search for, without accents. */
  readonly common: ReadonlySet<string>;
  readonly letters: RegExp;
  /** Longest first. */
  readonly endings: readonly string[];
}

const languages: readonly Language[] = [
  {
    common: setOf(
      "aber als am an auch auf aus bei bin bis das dass dem den der des die durch ein eine einem einen einer es fur habe haben hat " +
        "hatte ich ihr im ist mir mit nach nicht oder sich sie sind und uns vom von vor war waren wann warum was welche welchem " +
        "welchen welcher welches wer wie wir wo wurde wurden zu zum zur",
    ),
    letters: /[äöüß]/iu,
    endings: ["ern", "en", "er", "es", "em", "e", "n", "s"],
  },
  {
    common: setOf(
      "a au aux avec ce ces cette combien comment dans de des du elle en est et il ils je la le les leur lui mais ne nous on ont ou par " +
        "pas pour pourquoi qu quand que quel quelle quelles quels qui sa se ses son sont sur un une vous",
    ),
    letters: /[éèêçœâîûëï]/iu,
    endings: ["ees", "ent", "ee", "es", "er", "s", "e", "x"],
  },
  {
    common: setOf(
      "al como con cual cuales cuando cuanto de del donde el ella en era es esta este esto fue ha hay la las lo los me mi no nos para pero " +
        "por que quien se ser si sin su sus un una y",
    ),
    letters: /[ñ¿¡áíóú]/iu,
    endings: ["es", "as", "os", "s", "a", "o"],
  },
];

/** The language of a query, by its letters and function words; null for English and for what cannot be told. */
export function languageOf(pattern: string, english: ReadonlySet<string>): Language | null {
  const words = (
    pattern
      .normalize("NFKD")
      .toLowerCase()
      .match(/\p{L}[\p{L}\p{M}]*/gu) ?? []
  ).map(withoutMarks);
  const count = (common: ReadonlySet<string>): number => words.filter((word) => common.has(word)).length;
  const composed = pattern.normalize("NFC");
  const scored = languages.map((language) => {
    return { language, score: count(language.common) + (language.letters.test(composed) ? 2 : 0) };
  });
  const [best] = scored.toSorted((one, other) => other.score - one.score);
  return best !== undefined && best.score >= 2 && best.score > count(english) ? best.language : null;
}

const withoutMarks = (word: string): string => word.replace(/\p{M}/gu, "");

const stemMin = 4;

/** A word, without accents and in lower case, with each of the endings of its language; itself first. */
export function formsOf(word: string, { endings }: Language): readonly string[] {
  if (word.length < stemMin || !/^\p{L}+$/u.test(word)) return [word];
  const ending = endings.find((each) => word.endsWith(each) && word.length - each.length >= stemMin) ?? "";
  const base = word.slice(0, word.length - ending.length);
  return [...new Set([word, base, ...endings.map((each) => base + each)])];
}
