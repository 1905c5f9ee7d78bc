/**
 * Finds relative times in a text ("yesterday", "last Tuesday", "in two weeks") and resolves them against the day on which
 * it was said: in English, German, French, Spanish, Chinese and Japanese. Pure.
 *
 * Only what has one meaning is resolved: "next Friday" may be this week's or the one after, and "hier" is German, too.
 */

import { once } from "./once.ts";
import { dayMs, wallTime, type Timestamp } from "./time.ts";

/** From the first to the last day, `2026-11-17`; the same twice for one day. */
interface Days {
  readonly from: string;
  readonly to: string;
}

export interface RelativeTime extends Days {
  /** As it was said. */
  readonly words: string;
  readonly language: Language;
}

type Language = "en" | "de" | "fr" | "es" | "zh" | "ja";
type Unit = "day" | "week" | "month" | "year";

interface Rule {
  readonly language: Language;
  readonly pattern: RegExp;
  /** `groups`: what the pattern's groups hold. */
  readonly resolve: (saidMs: number, groups: readonly string[]) => Days;
}

/** The day or days that a text names and nothing else: `last tuesday`. Null if it names none. */
export const readRelativeTime = (text: string, at: Timestamp, zone: string): RelativeTime | null =>
  findRelativeTimes(text, at, zone).find(({ words }) => words.length === text.length) ?? null;

/** In the order in which they were said. */
export function findRelativeTimes(text: string, at: Timestamp, zone = "UTC"): readonly RelativeTime[] {
  if (!mayHold.test(text)) return [];
  const saidMs = Date.parse(`${wallTime(at, zone).date}T00:00:00Z`);
  const found: (RelativeTime & { readonly index: number })[] = [];
  for (const { language, pattern, resolve } of rules())
    for (const { 0: words, index, ...groups } of text.matchAll(pattern)) {
      // "The day before yesterday" is not yesterday: longer ones come first.
      if (found.some((other) => index < other.index + other.words.length && other.index < index + words.length))
        continue;
      const given = Object.entries(groups).flatMap(([key, group]) =>
        /^\d+$/.test(key) && typeof group === "string" ? group : [],
      );
      found.push({ words, language, index, ...resolve(saidMs, given) });
    }
  return found.toSorted((one, other) => one.index - other.index).map(({ index: _, ...time }) => time);
}

/** `2026-11-17`; `2026-11` or `2026` for a whole month or year; both ends of a week. */
export function formatDays({ from, to }: Days): string {
  if (from === to) return from;
  if (from.slice(5) === "01-01" && to.slice(5) === "12-31") return from.slice(0, 4);
  return from.endsWith("-01") && Number(to.slice(8)) > 27 ? from.slice(0, 7) : `${from} – ${to}`;
}

/** As people write it in the language in which it was said: a day, the month of a week, a month, or a year. */
export function writeDays(time: RelativeTime): string {
  const short = formatDays(time);
  if (short.length === 4) return short;
  const day = short.length === 10 ? ({ day: "numeric" } as const) : {};
  const options = { ...day, month: "long", year: "numeric", timeZone: "UTC" } as const;
  return new Date(`${time.from}T00:00:00Z`).toLocaleDateString(time.language, options);
}

// ── Arithmetic ───────────────────────────────────────────────────────────────────────────────────────────────────────

const dayAt = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
const dayAfter = (saidMs: number, days: number): Days => ({
  from: dayAt(saidMs + days * dayMs),
  to: dayAt(saidMs + days * dayMs),
});

/** A week, month or year as a whole, this many after the one in which it was said. */
function wholeAfter(saidMs: number, unit: Unit, by: number): Days {
  const said = new Date(saidMs);
  const [year, month] = [said.getUTCFullYear(), said.getUTCMonth()];
  if (unit === "year") return { from: `${year + by}-01-01`, to: `${year + by}-12-31` };
  if (unit === "month")
    return { from: dayAt(Date.UTC(year, month + by, 1)), to: dayAt(Date.UTC(year, month + by + 1, 0)) };
  const monday = saidMs + (7 * by - ((said.getUTCDay() + 6) % 7)) * dayMs;
  return { from: dayAt(monday), to: dayAt(monday + 6 * dayMs) };
}

/** Days and weeks are counted to the day; "three months ago" is a month. */
const after = (saidMs: number, unit: Unit, by: number): Days =>
  unit === "day" || unit === "week" ? dayAfter(saidMs, by * (unit === "week" ? 7 : 1)) : wholeAfter(saidMs, unit, by);

/** The latest such day before it was said; 0 is Sunday. */
const weekdayBefore = (saidMs: number, weekday: number): Days =>
  dayAfter(saidMs, -(((new Date(saidMs).getUTCDay() - weekday + 6) % 7) + 1));

function monthBefore(saidMs: number, month: number): Days {
  const now = new Date(saidMs).getUTCMonth();
  return wholeAfter(saidMs, "month", month - now - (month < now ? 0 : 12));
}

// ── Words ────────────────────────────────────────────────────────────────────────────────────────────────────────────

const numberWords = [
  "a an one einem einer un une una 一",
  "two zwei deux dos 二 两 兩",
  "three drei trois tres 三",
  "four vier quatre cuatro 四",
  "five fünf cinq cinco 五",
  "six sechs seis 六",
  "seven sieben sept siete 七",
  "eight acht huit ocho 八",
  "nine neun neuf nueve 九",
  "ten zehn dix diez 十",
].map((words) => words.split(" "));
const count = `(\\d{1,3}|${numberWords.flat().join("|")})`;
const toCount = (text: string): number =>
  numberWords.findIndex((words) => words.includes(text.toLowerCase())) + 1 || Number(text);

const unitWords: Readonly<Record<Unit, string>> = {
  day: "days?|tag(?:en)?|jours?|d[ií]as?|天|日",
  week: "weeks?|wochen?|semaines?|semanas?|周|週間?",
  month: "months?|monat(?:en)?|mois|mes(?:es)?|[个個か]月|ヶ月",
  year: "years?|jahr(?:en)?|ans?|années?|años?|年",
};
const unitPatterns = once(() =>
  Object.entries(unitWords).map(([unit, source]) => [unit as Unit, new RegExp(`^(?:${source})$`, "iu")] as const),
);
const unit = `(${Object.values(unitWords).join("|")})`;
const toUnit = (text: string): Unit => unitPatterns().find(([, pattern]) => pattern.test(text))?.[0] ?? "day";

const words = (source: string): RegExp => new RegExp(`(?<![\\p{L}\\d])(?:${source})(?![\\p{L}\\d])`, "giu");

const onDay = (language: Language, by: number, source: string): Rule => ({
  language,
  pattern: language === "zh" || language === "ja" ? new RegExp(source, "gu") : words(source),
  resolve: (saidMs) => dayAfter(saidMs, by),
});

const counted = (language: Language, sign: 1 | -1, source: string): Rule => ({
  language,
  pattern: language === "zh" || language === "ja" ? new RegExp(source, "gu") : words(source),
  resolve: (saidMs, [amount = "", of = ""]) => after(saidMs, toUnit(of), sign * toCount(amount)),
});

const whole = (language: Language, by: 1 | -1, source: string): Rule => ({
  language,
  pattern: words(source),
  resolve: (saidMs, [of = ""]) => wholeAfter(saidMs, toUnit(of), by),
});

const named = (
  language: Language,
  names: string,
  source: (name: string) => string,
  resolve: typeof weekdayBefore,
): Rule => ({
  language,
  pattern: words(source(`(${names.replaceAll(" ", "|")})`)),
  resolve: (saidMs, [name = ""]) => resolve(saidMs, names.split(" ").indexOf(name.toLowerCase())),
});

/** After these, "in two weeks" is how long something took. */
const took = "(?<!\\b(?:\\p{L}+ed|done|made|took|built|wrote|ran|times?|once|twice)(?: \\p{L}+){0,2} )";
const months = "january february march april may june july august september october november december";

/** Every relative time has one of these, and most texts have none: a quick look, since each search looks many times. */
const mayHold =
  /yesterday|last (?:night|\w*day|week|month|year|[jfmasond]\w+)|tomorrow| ago\b|next (?:week|month|year)|\bin (?:\d|\p{L}+ (?:day|week|month|year|tag|woche|monat|jahr))|gestern|morgen|\bvor |letzte|vergangene|nächste|hier |demain|il y a|dans |derni|prochain|ayer|anoche|mañana|hace |dentro |pasad|que viene|[日天前后後]|おととい|あさって/iu;

const rules = once((): readonly Rule[] => [
  onDay("en", -2, "(?:the )?day before yesterday"),
  onDay("en", 2, "(?:the )?day after tomorrow"),
  onDay("en", -1, "yesterday|last night"),
  onDay("en", 1, "tomorrow"),
  onDay("de", -2, "vorgestern"),
  onDay("de", -1, "gestern"),
  onDay("de", 2, "übermorgen"),
  // Only in small letters: with a capital it is the morning, or a greeting.
  { ...onDay("de", 1, ""), pattern: /(?<![\p{L}\d])(?<!\b(?:heute|gestern) )morgen(?![\p{L}\d])/gu },
  onDay("fr", -2, "avant-hier"),
  onDay("fr", 2, "après-demain"),
  onDay("fr", -1, "hier (?:soir|matin)"),
  onDay("fr", 1, "demain"),
  onDay("es", -2, "anteayer|antes de ayer"),
  onDay("es", 2, "pasado mañana"),
  onDay("es", -1, "ayer|anoche"),
  onDay("es", 1, "(?<!\\b(?:la|de|una|esta|cada) )mañana"),
  onDay("ja", -2, "一昨日|おととい"),
  onDay("ja", 2, "明後日|あさって"),
  onDay("ja", -1, "昨日"),
  onDay("ja", 1, "明日"),
  onDay("zh", -2, "前天"),
  onDay("zh", 2, "后天|後天"),
  onDay("zh", -1, "昨天"),
  onDay("zh", 1, "明天"),
  counted("en", -1, `${count} ${unit} ago`),
  counted("de", -1, `vor ${count} ${unit}`),
  counted("fr", -1, `il y a ${count} ${unit}`),
  counted("es", -1, `hace ${count} ${unit}`),
  counted("en", 1, `${took}in ${count} ${unit}(?! of)`),
  counted("fr", 1, `dans ${count} ${unit}`),
  counted("es", 1, `dentro de ${count} ${unit}`),
  counted("zh", -1, `${count}${unit}前`),
  counted("zh", 1, `${count}${unit}[后後]`),
  named("en", "sunday monday tuesday wednesday thursday friday saturday", (day) => `last ${day}`, weekdayBefore),
  named(
    "de",
    "sonntag montag dienstag mittwoch donnerstag freitag samstag",
    (day) => `(?:letzten|vergangenen) ${day}`,
    weekdayBefore,
  ),
  named("fr", "dimanche lundi mardi mercredi jeudi vendredi samedi", (day) => `${day} dernier`, weekdayBefore),
  named("es", "domingo lunes martes miércoles jueves viernes sábado", (day) => `${day} pasado`, weekdayBefore),
  named("en", months, (month) => `last ${month}`, monthBefore),
  whole("en", -1, "last (week|month|year)"),
  whole("en", 1, "next (week|month|year)"),
  whole("de", -1, "(?:letzte|vergangene)[ns]? (woche|monat|jahr)"),
  whole("de", 1, "nächste[ns]? (woche|monat|jahr)"),
  whole("fr", -1, "(semaine|mois|année|an) derni(?:er|ère)"),
  whole("fr", 1, "(semaine|mois|année|an) prochaine?"),
  whole("es", -1, "(semana|mes|año) pasad[oa]"),
  whole("es", 1, "(semana|mes|año) que viene"),
]);
