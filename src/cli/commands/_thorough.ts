/** `lcm ask --thorough`: answers by reading every message. Without --apply it shows the plan and its cost. */

import { plural } from "../../core/base/format.ts";
import type { ThoroughAnswer, ThoroughRequest } from "../../core/recall/map/thorough.ts";
import { answerLines, caveatWords, sourcesOf } from "../../format/answer.ts";
import { spentWords } from "../../format/map.ts";
import { facts } from "../../format/table.ts";
import { oneLine } from "../../format/safe-text.ts";
import { applyOptions } from "./_applying.ts";
import { about, list, object, text, whole } from "./_json.ts";
import {
  endJson,
  endMapping,
  fileIdsJson,
  mappingOptions,
  planAndRead,
  planFields,
  spentJson,
  unreadJson,
  type MappingOptions,
} from "./_mapping.ts";
import type { OptionsOf, OptionTable } from "./_options.ts";
import { planned } from "./_shapes.ts";
import type { Session } from "./_session.ts";

export const thoroughOptions = {
  thorough: ["--thorough", "read every message, for questions that count, list or compare; needs --apply"],
  ...mappingOptions,
  ...applyOptions,
} as const satisfies OptionTable;

export type ThoroughOptions = OptionsOf<typeof thoroughOptions> &
  MappingOptions & { readonly maxTokens?: number; readonly timeout?: number };

const countFields = { facts: whole, messages: whole };

/** What `--json` prints with --thorough; `answer` describes an answer. */
export const thoroughJson = (answer: Parameters<typeof object>[0]) =>
  planned(
    object({ ...planFields, answering: about(spentJson, "included in the figures above") }),
    object({
      ...answer,
      reading: object({
        messages: whole,
        read: whole,
        unread: unreadJson,
        matching: about(whole, "messages with facts"),
        facts: whole,
        subjects: list(object({ subject: text, ...countFields })),
        dropped: about(whole, "facts without a true quote, which are not used"),
        spent: spentJson,
        files: about(fileIdsJson, "stored files with all facts"),
      }),
    }),
  );

export async function askThoroughly(
  session: Session,
  options: ThoroughOptions,
  prompt: string,
): Promise<number | void> {
  const { timeout, maxTokens } = options;
  const limit = timeout === undefined ? [] : [AbortSignal.timeout(Math.ceil(timeout * 1_000))];
  const limited = { ...session, signal: AbortSignal.any([session.signal, ...limit]) };
  return await planAndRead(limited, options, {
    request: (cover): ThoroughRequest => ({ ...cover, prompt, ...(maxTokens && { maxTokens }) }),
    plan: async (lcm, request) => lcm.planThorough(request),
    run: async (lcm, request) => lcm.thorough(request),
    end(within, _, answer, plan) {
      const missing = answer.reading.unread.length === 0 ? null : answer.partial;
      if (within.json) return endJson(within, true, { plan, result: answer }, missing);
      print(within, answer);
      return endMapping(within, missing);
    },
  });
}

const sourcesMax = 8;

function print(session: Session, answer: ThoroughAnswer): void {
  const { paint, note } = session;
  const { reading, partial, truncated, caveats } = answer;
  session.print();
  for (const line of answerLines(session, answer)) session.print(line);
  session.print();
  const sources = sourcesOf(answer);
  const more = sources.length > sourcesMax ? [`and ${sources.length - sourcesMax} more; --json lists them all`] : [];
  const rows = [
    [
      "read",
      `${plural(reading.read, "message")}; ${plural(reading.facts, "fact")} in ${plural(reading.matching, "message")}`,
    ],
    ...(sources.length === 0
      ? []
      : [["sources", ...sources.slice(0, sourcesMax).map((id) => `lcm describe ${id}`), ...more] as const]),
    ...(reading.files.length === 0 ? [] : [["facts", ...reading.files.map((id) => `lcm describe ${id}`)] as const]),
    ["spent", spentWords(reading.spent)],
  ] as const;
  for (const line of facts(rows, paint, session.bounds)) session.print(line);
  const notes = [
    ...caveats.map(caveatWords),
    ...(truncated ? ["the answer was cut; raise --max-tokens"] : []),
    ...(partial === null || reading.unread.length > 0 ? [] : [partial]),
  ];
  for (const words of notes) note(`${paint.caution("note:")} ${oneLine(words)}`);
}
