/** Puts a stage on a canvas: its size, its colours, and the finer layers that it asks for. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { ConversationId } from "../../../core/model/types.ts";
import type { Timeline } from "../../contract.ts";
import { read } from "../api.ts";
import { createStage, type Stage, type Window } from "./stage.ts";
import { readTheme } from "./theme.ts";

interface StageUse {
  readonly conversation: ConversationId;
  readonly prompt: number;
  readonly onView: (window: Window) => void;
  readonly onDetail: (timeline: Timeline) => void;
}

export type Canvas = { readonly current: HTMLCanvasElement | null };
export type StageRef = { readonly current: Stage | null };

/** Requests for finer layers wait until the view has been still for a moment. */
const calmMs = 90;
const noticeMs = 100;

export function useStage(canvas: Canvas, { conversation, prompt, onView, onDetail }: StageUse): StageRef {
  const stage = useRef<Stage | null>(null);
  const [, setReady] = useState(false);
  useEffect(() => {
    const element = canvas.current;
    if (element === null) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let noticing: ReturnType<typeof setTimeout> | undefined;
    let abort = new AbortController();
    const created = createStage(element, {
      onView() {
        noticing ??= setTimeout(() => {
          noticing = undefined;
          onView(created.view());
        }, noticeMs);
      },
      onNeed(window, cells) {
        clearTimeout(timer);
        timer = setTimeout(() => {
          abort.abort();
          abort = new AbortController();
          read("timeline", { conversation, ...window, cells, ...(prompt > 0 ? { prompt } : {}) }, abort.signal).then(
            (detail) => {
              created.setDetail(detail);
              onDetail(detail);
            },
            // The coarse layer is still there.
            () => undefined,
          );
        }, calmMs);
      },
    });
    stage.current = created;
    const end = fitAndTheme(element, created);
    setReady(true);
    return () => {
      end();
      abort.abort();
      clearTimeout(timer);
      clearTimeout(noticing);
      created.end();
    };
  }, []);
  return stage;
}

/** Follows the size of the element, and dark and light. */
function fitAndTheme(canvas: HTMLCanvasElement, stage: Stage): () => void {
  const themed = (): void => stage.setTheme(readTheme(canvas, devicePixelRatio));
  const fit = (): void => stage.resize(canvas.clientWidth, canvas.clientHeight, devicePixelRatio);
  const size = new ResizeObserver(fit);
  size.observe(canvas);
  const root = new MutationObserver(themed);
  root.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", themed);
  fit();
  themed();
  return () => {
    size.disconnect();
    root.disconnect();
    dark.removeEventListener("change", themed);
  };
}
