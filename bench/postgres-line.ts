/** A line to a server that is so much longer: passes bytes on in both directions, those to the server after a delay. */

import { createServer, connect, type AddressInfo, type Socket } from "node:net";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

/** In a thread of its own, because it waits busily: timers have whole milliseconds. */
export async function delayed(url: string, ms: number) {
  const far = new URL(url);
  const line = new Worker(new URL(import.meta.url), { workerData: { lineTo: Number(far.port), ms } });
  const port = await new Promise<number>((resolve) => line.once("message", resolve));
  far.port = String(port);
  return { url: far.href, stop: async () => await line.terminate() };
}

function serve({ lineTo, ms }: { readonly lineTo: number; readonly ms: number }): void {
  const waiting: { readonly due: number; readonly pass: () => void }[] = [];
  const look = (): void => {
    while ((waiting[0]?.due ?? Infinity) <= performance.now()) waiting.shift()?.pass();
    if (waiting.length > 0) setImmediate(look);
  };
  const later = (pass: () => void): void => {
    if (waiting.push({ due: performance.now() + ms, pass }) === 1) setImmediate(look);
  };
  const listener = createServer((near: Socket) => {
    const far = connect(lineTo, "127.0.0.1");
    for (const socket of [near, far]) {
      socket.setNoDelay(true);
      socket.on("error", () => undefined);
    }
    near.on("data", (bytes) => later(() => far.write(bytes)));
    near.on("close", () => later(() => far.end()));
    far.on("data", (bytes) => near.write(bytes));
    far.on("close", () => near.end());
  });
  listener.listen(0, "127.0.0.1", () => parentPort?.postMessage((listener.address() as AddressInfo).port));
}

if (!isMainThread && typeof workerData === "object")
  serve(workerData as { readonly lineTo: number; readonly ms: number });
