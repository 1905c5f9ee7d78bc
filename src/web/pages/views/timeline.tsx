/** The timeline of a conversation: from a year to one message, with what the model sees of each, and marks on it. */

import { useEffect, useRef, useState } from "preact/hooks";
import { formatCount, plural } from "../../../core/base/format.ts";
import { msToTimestamp } from "../../../core/base/time.ts";
import { parseMessageId, seqOf } from "../../../core/model/types.ts";
import type { Timeline } from "../../contract.ts";
import { useRead } from "../api.ts";
import { Empty, Shown, useStill } from "../parts/ui.tsx";
import { addressOf, placeNow, replace, withSettings } from "../router.ts";
import { useAround } from "../session.ts";
import { Legend, SelectionBar, Tip, Toolbar, type Hover } from "../timeline/around.tsx";
import { InView, itemWords } from "../timeline/in-view.tsx";
import { states, type Axis } from "../timeline/layer.ts";
import { listenToPointers } from "../timeline/pointer.ts";
import { Preview } from "../timeline/preview.tsx";
import type { Item, Stage, Window } from "../timeline/stage.ts";
import { useTimelineKeys } from "../timeline/use-keys.ts";
import { useMarks } from "../timeline/use-marks.ts";
import { useStage, type Canvas } from "../timeline/use-stage.ts";
import { span, stateWords } from "../words.ts";
import { conversationIdOf, OfConversation } from "./of-conversation.tsx";

const wholeCells = 2_000;

export function TimelineView() {
  const { place } = useAround();
  const conversation = conversationIdOf(place.of);
  const prompt = Number(place.settings["prompt"] ?? 0);
  const asked = useRead(
    "timeline",
    { conversation, cells: wholeCells, ...(prompt > 0 ? { prompt } : {}) },
    { keeps: true },
  );
  return (
    <Shown asked={asked} what="the timeline">
      {(timeline) => (
        <OfConversation conversation={conversation} name={timeline.name} view="timeline">
          {timeline.extent === null ? (
            <Empty title="No messages yet.">They appear here as they are stored.</Empty>
          ) : (
            <TimelineShown key={conversation} timeline={timeline} prompt={prompt} />
          )}
        </OfConversation>
      )}
    </Shown>
  );
}

interface Props {
  readonly timeline: Timeline;
  readonly prompt: number;
}

/** What is pointed at, opened and selected, kept in step with the stage and the address. */
function useTimeline(canvas: Canvas, { timeline, prompt }: Props) {
  const { place, session } = useAround();
  const axis: Axis = place.settings["axis"] === "messages" ? "messages" : "time";
  const [detail, setDetail] = useState<Timeline | null>(null);
  const [focus, setFocus] = useState<Item | null>(null);
  const [opened, setOpened] = useState<Item | null>(null);
  const [hover, setHover] = useState<Hover | null>(null);
  const [selection, setSelection] = useState<Window | null>(null);
  const [view, setView] = useState<Window>(timeline.window);
  const open = (item: Item | null): void => {
    setFocus(item);
    setOpened(item);
  };
  const conversation = timeline.conversation.id;
  const stage = useStage(canvas, { conversation, prompt, onView: setView, onDetail: setDetail });
  const select = (window: Window | null): void => {
    setSelection(window);
    if (window === null) stage.current?.setSelection(null);
  };
  useEffect(() => stage.current?.setTimeline(timeline, axis, session.zone), [timeline, axis]);
  useEffect(() => followAddress(stage.current, place.settings, open), [stage.current, place]);
  useEffect(() => stage.current?.setFocus(focus), [focus]);
  useEffect(() => stage.current?.setHover(hover?.item ?? null), [hover]);
  useEffect(() => {
    if (canvas.current === null || stage.current === null) return;
    return listenToPointers(canvas.current, stage.current, {
      onHover: (item, at) => setHover(item === null ? null : { item, ...at }),
      onOpen: open,
      onSelect: (from, to) => select({ from, to }),
    });
  }, []);
  const still = useStill(view, 300);
  useEffect(() => replace(withSettings(placeNow(place), addressSettings(timeline, still, opened))), [still, opened]);
  useTimelineKeys({ stage, focus, setFocus, setOpened, select, selection, axis });
  return { stage, axis, detail, focus, opened, hover, selection, still, open, setFocus, select };
}

function TimelineShown(props: Props) {
  const { timeline } = props;
  const { place } = useAround();
  const conversation = timeline.conversation.id;
  const canvas = useRef<HTMLCanvasElement>(null);
  const { stage, axis, detail, focus, opened, hover, selection, still, open, setFocus, select } = useTimeline(
    canvas,
    props,
  );
  const marks = useMarks(stage, timeline, place.settings);
  return (
    <>
      {timeline.prompt !== null && (
        <p class="note">
          States as in prompt {timeline.prompt}.{" "}
          <a href={addressOf("seen", conversation, { prompt: timeline.prompt })}>The prompt</a> ·{" "}
          <a href={addressOf("timeline", conversation)}>States as of now</a>
        </p>
      )}
      <Toolbar axis={axis} stage={stage.current} marks={marks} />
      <p id="timeline-status" class="soft" role="status">
        {viewWords(timeline, still)}
      </p>
      <div class="stage">
        <canvas
          ref={canvas}
          tabIndex={0}
          role="application"
          aria-roledescription="timeline"
          aria-label={`Timeline of ${timeline.name}. Arrow keys move between items, plus and minus zoom, enter opens. The list below has the same items.`}
          aria-describedby="timeline-status"
        />
        {hover !== null && <Tip conversation={conversation} hover={hover} />}
      </div>
      <p class="visually-hidden" role="status">
        {focus !== null && `${itemWords(conversation, focus)}, ${stateWords[states[focus.state] ?? "prompt"]}`}
      </p>
      <Legend timeline={timeline} />
      {selection !== null && (
        <SelectionBar
          conversation={conversation}
          selection={selection}
          stage={stage.current}
          onClear={() => select(null)}
        />
      )}
      {opened !== null && (
        <Preview conversation={conversation} item={opened} stage={stage.current} onClose={() => open(null)} />
      )}
      <InView
        timelines={detail === null ? [timeline] : [timeline, detail]}
        window={still}
        onFocus={(target) => {
          stage.current?.reach(target);
          setFocus(stage.current?.item(target) ?? null);
          canvas.current?.focus();
        }}
      />
    </>
  );
}

/** Shows what the address names: a part, or an item. */
function followAddress(
  stage: Stage | null,
  settings: Readonly<Record<string, string>>,
  open: (item: Item) => void,
): void {
  if (stage === null) return;
  const [from, to] = [Number(settings["from"] ?? 0), Number(settings["to"] ?? 0)];
  const focus = settings["focus"] ?? "";
  const message = parseMessageId(focus);
  const seq = message === null ? 0 : seqOf(message);
  if (from > 0 && to >= from) stage.show({ from, to });
  else if (seq > 0) stage.show({ from: Math.max(1, seq - 40), to: seq + 40 });
  const rows = message === null ? Array.from({ length: stage.depths() }, (_, depth) => depth) : [-1];
  if (focus === "") return;
  // A finer layer may still be on its way; then only messages are known by their numbers.
  for (const row of rows) {
    const item = stage.item({ row, seq: seq || from });
    if (item !== null && (row < 0 || item.id === focus))
      return open(row < 0 && message !== null ? { ...item, id: message, first: seq, last: seq, count: 1 } : item);
  }
}

function addressSettings(timeline: Timeline, { from, to }: Window, opened: Item | null) {
  const { window } = timeline;
  const isWhole = from <= window.from && to >= window.to;
  const id = opened?.id ?? null;
  const focus =
    id === null ? null : typeof id === "number" ? `msg_${timeline.conversation.id}-${seqOf(id as never)}` : id;
  return { from: isWhole ? null : from, to: isWhole ? null : to, focus };
}

function viewWords(timeline: Timeline, { from, to }: Window): string {
  const at = (seq: number): number =>
    timeline.pace.findLast(([each]) => each <= seq)?.[1] ?? timeline.pace[0]?.[1] ?? 0;
  const when = span(msToTimestamp(at(from)), msToTimestamp(at(to)));
  const { window } = timeline;
  const isWhole = from <= window.from && to >= window.to;
  return `${isWhole ? "All" : "In view"}: ${plural(to - from + 1, "message")}${isWhole ? "" : ` (${formatCount(from)}–${formatCount(to)})`}, ${when}`;
}
