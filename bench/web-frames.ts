/**
 * Measures the explorer's timeline in a real browser over a conversation of 100,000 messages: how long scripts run per frame
 * while one zooms and pans, and how much memory the page takes. Prints JSON.
 */

import { longDatabase } from "../test/support/long-conversation.ts";
import { portOver } from "../test/support/robot.ts";
import { openBrowser, startExplorer, visit } from "../test/support/visitor.ts";
import { spread, type Spread } from "./measure.ts";

export interface Frames {
  readonly zoomMs: Spread;
  readonly panMs: Spread;
  /** Of JavaScript, once everything was looked at. */
  readonly heapMb: number;
}

/** Adds up what all callbacks of a frame take. */
const watching = `
  window.frames = [];
  const request = window.requestAnimationFrame.bind(window);
  let last = -1;
  window.requestAnimationFrame = (callback) => request((now) => {
    const start = performance.now();
    callback(now);
    const took = performance.now() - start;
    if (now === last) window.frames[window.frames.length - 1] += took;
    else window.frames.push(took);
    last = now;
  });`;

const port = portOver(process.argv[2] ?? (await longDatabase()), { readOnly: true });
const served = await startExplorer(port);
const visitor = await visit(served);
const { page } = visitor;
await page.evaluateOnNewDocument(watching);
await visitor.go("#/timeline/1");
await page.reload();
await visitor.sees("All: 100,000 messages");
const box = (await page.evaluate(
  "(({ x, y, width, height }) => ({ x, y, width, height }))(document.querySelector('canvas').getBoundingClientRect())",
)) as { readonly x: number; readonly y: number; readonly width: number; readonly height: number };

/** Moves as a person does, and returns what each frame took. */
async function watch(move: (step: number) => Promise<void>, steps: number): Promise<readonly number[]> {
  await page.evaluate("window.frames.length = 0");
  for (let step = 0; step < steps; step++) await move(step);
  return (await page.evaluate("window.frames")) as readonly number[];
}

const place = (share: number) => page.mouse.move(box.x + box.width * share, box.y + box.height * 0.7);
const zooms: number[] = [];
const pans: number[] = [];
for (const [round, share] of [0.2, 0.5, 0.8, 0.95].entries()) {
  await place(share);
  zooms.push(...(await watch(async () => await page.mouse.wheel({ deltaY: -160 }), 24)));
  pans.push(
    ...(await watch(async (step) => await page.mouse.wheel({ deltaX: step % 2 === round % 2 ? 260 : -120 }), 24)),
  );
  zooms.push(...(await watch(async () => await page.mouse.wheel({ deltaY: 160 }), 24)));
}
const { JSHeapUsedSize = 0 } = await page.metrics();
const measured: Frames = { zoomMs: spread(zooms), panMs: spread(pans), heapMb: JSHeapUsedSize / 1e6 };
process.stdout.write(`${JSON.stringify(measured)}\n`);
await (await openBrowser()).close();
await served.close();
await port.close();
