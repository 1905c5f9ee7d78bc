/** What is around the canvas of the timeline: its tools, its legend, and what is pointed at or selected. */

import { useState } from "preact/hooks";
import { formatCount, plural } from "../../../core/base/format.ts";
import type { ConversationId } from "../../../core/model/types.ts";
import type { Timeline } from "../../contract.ts";
import { Button, Choice, FailureNote, Field } from "../parts/ui.tsx";
import { addressOf, go, placeNow, withSettings } from "../router.ts";
import { useAround } from "../session.ts";
import { stateWords } from "../words.ts";
import { itemWords } from "./in-view.tsx";
import { states, type Axis } from "./layer.ts";
import type { Item, Stage, Window } from "./stage.ts";
import { hitsMax, type AskedMarks } from "./use-marks.ts";

export interface Hover {
  readonly item: Item;
  readonly x: number;
  readonly y: number;
}

export function Tip({
  conversation,
  hover: { item, x, y },
}: {
  readonly conversation: ConversationId;
  readonly hover: Hover;
}) {
  return (
    <div class="tip" aria-hidden="true" style={{ left: `${x}px`, top: `${y}px` }}>
      {itemWords(conversation, item)}
      <br />
      {stateWords[states[item.state] ?? "prompt"]}
    </div>
  );
}

interface ToolbarProps {
  readonly axis: Axis;
  readonly stage: Stage | null;
  readonly marks: AskedMarks;
}

export function Toolbar({ axis, stage, marks }: ToolbarProps) {
  const { place } = useAround();
  const [words, setWords] = useState(place.settings["q"] ?? "");
  const isFindings = place.settings["findings"] === "true";
  return (
    <div class="tools timeline-tools">
      <form
        role="search"
        class="grow"
        onSubmit={(event) => {
          event.preventDefault();
          go(withSettings(placeNow(place), { q: words }));
        }}
      >
        <Field id="timeline-search" size="grow" label="Find on the timeline" value={words} onInput={setWords} />
      </form>
      <Choice
        label="Axis"
        value={axis}
        options={[
          ["time", "time"],
          ["messages", "messages"],
        ]}
        onChange={(next) => go(withSettings(placeNow(place), { axis: next }))}
      />
      <Button aria-pressed={isFindings} onClick={() => go(withSettings(placeNow(place), { findings: !isFindings }))}>
        Findings{!isFindings ? "" : marks.findings === null ? ": checking …" : ` (${marks.findings})`}
      </Button>
      <span class="choice" role="group" aria-label="Zoom">
        <Button aria-label="Zoom out" onClick={() => stage?.zoomBy(2, undefined, true)}>
          −
        </Button>
        <Button aria-label="Zoom in" onClick={() => stage?.zoomBy(0.5, undefined, true)}>
          +
        </Button>
        <Button onClick={() => stage?.showAll()}>All</Button>
      </span>
      {marks.hits !== null && (
        <span role="status" class="soft">
          {marks.hits >= hitsMax ? `the first ${hitsMax} matches` : plural(marks.hits, "match", "matches")} ▾{" "}
          <a href={addressOf("search", "", { q: place.settings["q"], conversation: place.of })}>list</a>
        </span>
      )}
      {marks.note !== null && <FailureNote failure={{ code: "bug", message: marks.note, hint: null }} />}
    </div>
  );
}

const markWords = [
  ["line", "reset"],
  ["notch", "fold"],
  ["ring", "change or pin"],
  ["triangle", "match"],
  ["diamond", "finding"],
] as const;

export function Legend({ timeline: { conversation, before, after } }: { readonly timeline: Timeline }) {
  return (
    <div class="legend-row">
      <ul class="legend" aria-label="Legend">
        {states.map((state) => (
          <li key={state}>
            <span class={`swatch state-${state}`} aria-hidden="true" /> {stateWords[state]}
          </li>
        ))}
        {markWords.map(([shape, words]) => (
          <li key={shape}>
            <span class={`shape shape-${shape}`} aria-hidden="true" /> {words}
          </li>
        ))}
      </ul>
      <p class="soft">
        {before !== null && <a href={addressOf("timeline", before)}>← the segment before</a>}{" "}
        {after !== null && <a href={addressOf("timeline", after)}>the segment after →</a>}{" "}
        <a href={addressOf("messages", conversation.id)}>Read the newest messages</a>
      </p>
    </div>
  );
}

interface SelectionProps {
  readonly conversation: ConversationId;
  readonly selection: Window;
  readonly stage: Stage | null;
  readonly onClear: () => void;
}

export const SelectionBar = ({ conversation, selection: { from, to }, stage, onClear }: SelectionProps) => (
  <div class="selection" role="status">
    <strong>{plural(to - from + 1, "message")}</strong> selected, {formatCount(from)}–{formatCount(to)}
    <Button
      onClick={() => {
        stage?.show({ from, to });
        onClear();
      }}
    >
      Zoom to them
    </Button>
    <a href={addressOf("messages", conversation, { at: from })}>Read from here</a>
    <Button class="quiet" onClick={onClear}>
      Clear
    </Button>
  </div>
);
