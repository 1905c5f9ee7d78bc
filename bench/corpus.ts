/**
 * Generates the conversation that benchmarks store: deterministic, of any length, in turns of four messages. A message
 * has about 200 tokens (user, assistant with a tool call, tool result, assistant). Words follow Zipf's law, as in real
 * text, so rare, medium and common terms exist; a few markers are at known positions.
 */

export interface Random {
  /** An integer, 0 ≤ n < below. */
  int(below: number): number;
}

/** mulberry32: small, fast, and the same everywhere. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  return {
    int(below) {
      state = (state + 0x6d2b79f5) >>> 0;
      let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
      mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
      return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296) * below);
    },
  };
}

const syllables =
  "ba co di fu ge ha ji ko lu me no pa qui ro su ta ve wo xi za ler ton mar ing est and con per tra sil".split(" ");
const vocabularySize = 40_000;

/** The words that make up most of any text, most common first; the long tail after them is made of syllables. */
const common =
  `the of and to in is that it for was on are as with be at this have from or had by not but what all were when
we there can an your which their said if do will each about how up out them then she many some so these would other into
has more her two like him see time could no make than first been its who now people my made over did down only way find
use may water long little very after words called just where most know get through back much before go good new write our
used me man too any day same right look think also around another came come work three word must because does part even
place well such here take why things help put years different away again off went old number great tell men say small
every found still between name should home big give air line set own under read last never us left end along while might
next sound below saw something thought both few those always looked show large often together asked house world going want
school important until form food keep children feet land side without boy once animals life enough took sometimes four head
above kind began almost live page got earth need far hand high year mother light parts country father let night following
picture being study second eyes soon times story boys since white days ever paper hard near sentence better best across
during today others however sure means knew try told young miles sun ways thing whole hear example heard several change
answer room sea against top turned learn point city play toward five using himself usually money seen car morning given
error file server database migration config deploy branch commit review test build release token budget context summary
cache query index table schema worker thread timeout retry queue message session channel plugin engine prompt model agent`
    .split(/\s+/)
    .filter((word) => word !== "");

const vocabulary: readonly string[] = (() => {
  const random = createRandom(7);
  const words = new Set<string>(common);
  while (words.size < vocabularySize) {
    const length = 1 + Math.min(random.int(4), random.int(4) + 1);
    let word = "";
    for (let n = 0; n <= length; n++) word += syllables[random.int(syllables.length)];
    words.add(word);
  }
  return [...words];
})();

/** Cumulative Zipf weights, scaled to integers, for bisection. */
const cumulative: Float64Array = (() => {
  const sums = new Float64Array(vocabularySize);
  let sum = 0;
  for (let rank = 0; rank < vocabularySize; rank++) sums[rank] = sum += 1 / (rank + 2.7);
  return sums;
})();

/** The word of this frequency rank: 0 is the most common. */
const wordOfRank = (rank: number): string => vocabulary[rank] ?? "";

function zipfWord(random: Random): string {
  const total = cumulative[vocabularySize - 1] ?? 1;
  const wanted = (random.int(1 << 30) / (1 << 30)) * total;
  let low = 0;
  let high = vocabularySize - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((cumulative[middle] ?? 0) < wanted) low = middle + 1;
    else high = middle;
  }
  return wordOfRank(low);
}

/** Every 10,000th message contains `raremark` with its number; the very first contains `oldestmark`. */
export const markers = { rare: "raremark", oldest: "oldestmark" } as const;

function prose(random: Random, words: number): string {
  const parts: string[] = [];
  for (let n = 1; n <= words; n++) parts.push(n % 14 === 0 ? `${zipfWord(random)}.` : zipfWord(random));
  return parts.join(" ");
}

const wordsPerMessage = 110;
const startMs = Date.UTC(2026, 0, 1);

/** The n-th message of the corpus, as a transcript entry. */
export function corpusEntry(n: number): Record<string, unknown> {
  const random = createRandom(n + 1);
  const at = startMs + n * 20_000;
  const id = n.toString(16).padStart(8, "0");
  const marks = [n === 0 ? `${markers.oldest} ` : "", n % 10_000 === 0 ? `${markers.rare}${n} ` : ""].join("");
  const wrap = (message: Record<string, unknown>): Record<string, unknown> => ({
    type: "message",
    id,
    timestamp: new Date(at).toISOString(),
    message: { ...message, timestamp: at },
  });
  switch (n % 4) {
    case 0:
      return wrap({ role: "user", content: `${marks}${prose(random, wordsPerMessage)}` });
    case 1:
      return wrap({
        role: "assistant",
        content: [
          { type: "text", text: prose(random, wordsPerMessage - 25) },
          {
            type: "toolCall",
            id: `call_${id}`,
            name: "read",
            arguments: { path: `src/${zipfWord(random)}/${zipfWord(random)}.ts`, note: prose(random, 12) },
          },
        ],
        provider: "bench",
        model: "bench-1",
        stopReason: "toolUse",
      });
    case 2:
      return wrap({
        role: "toolResult",
        toolCallId: `call_${(n - 1).toString(16).padStart(8, "0")}`,
        toolName: "read",
        content: [{ type: "text", text: prose(random, wordsPerMessage) }],
        isError: false,
      });
    default:
      return wrap({
        role: "assistant",
        content: [{ type: "text", text: prose(random, wordsPerMessage) }],
        provider: "bench",
        model: "bench-1",
        stopReason: "stop",
      });
  }
}

/** A question of eight words, some common and some rare. */
export function question(n: number): string {
  const random = createRandom(1_000_003 + n);
  const ranks = [3, 20, 80, 300, 900, 3_000, 9_000, 25_000];
  return ranks.map((rank) => wordOfRank(rank + random.int(Math.max(2, rank >> 2)))).join(" ");
}

/** Search terms by how often they occur; the last two are patterns that never match. */
export const searched = {
  rare: (i: number, n: number): string => `${markers.rare}${Math.floor((i * n) / 25 / 10_000) * 10_000}`,
  mid: (i: number): string => wordOfRank(2_000 + 37 * i),
  common: (i: number): string => wordOfRank(20 + i),
  nowhere: /nosuchword\d+anywhere/,
  nowhereWithoutLiteral: /\b[qx]{3}\d{7}\b/,
};
