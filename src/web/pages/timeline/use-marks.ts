/** Marks on the timeline that a person asks for: search hits and findings. */

import { useEffect, useState } from "preact/hooks";
import type { ConversationId } from "../../../core/model/types.ts";
import type { Health, Timeline } from "../../contract.ts";
import { failureOf, finish, read, write } from "../api.ts";
import type { StageRef } from "./use-stage.ts";

export interface AskedMarks {
  readonly hits: number | null;
  readonly findings: number | null;
  readonly note: string | null;
}

export const hitsMax = 200;

/** Search hits and findings, where the address asks for them. */
export function useMarks(stage: StageRef, timeline: Timeline, settings: Readonly<Record<string, string>>): AskedMarks {
  const conversation = timeline.conversation.id;
  const [hits, setHits] = useState<readonly number[] | null>(null);
  const [findings, setFindings] = useState<readonly number[] | null>(null);
  const [note, setNote] = useState<string | null>(null);
  const { q = "", mode } = settings;
  useEffect(() => {
    const abort = new AbortController();
    setNote(null);
    if (q === "") setHits(null);
    else
      read(
        "search",
        { pattern: q, conversation, scope: "both", limit: hitsMax, mode: mode === "regex" ? "regex" : "full_text" },
        abort.signal,
      ).then(
        (found) =>
          setHits(
            found.hits.flatMap(({ place, hit }) => (place === null || hit.kind !== "message" ? [] : [place.from])),
          ),
        (error: unknown) => abort.signal.aborted || setNote(failureOf(error).message),
      );
    return () => abort.abort();
  }, [q, mode, conversation]);
  const isAsked = settings["findings"] === "true";
  useEffect(() => {
    if (!isAsked) return setFindings(null);
    findPlaces(conversation).then(setFindings, (error: unknown) => setNote(failureOf(error).message));
  }, [isAsked, conversation, timeline.conversation.revision]);
  useEffect(() => {
    stage.current?.setMarks([
      { shape: "triangle", seqs: hits ?? [] },
      { shape: "diamond", seqs: findings ?? [] },
    ]);
  }, [hits, findings, timeline, settings["axis"]]);
  return { hits: hits?.length ?? null, findings: findings?.length ?? null, note };
}

async function findPlaces(conversation: ConversationId): Promise<readonly number[]> {
  const result = await finish(await write("health", { conversation }), () => undefined);
  const places: Health["places"] = result.kind === "health" ? result.health.places : {};
  return Object.values(places).map(({ from, to }) => Math.floor((from + to) / 2));
}
