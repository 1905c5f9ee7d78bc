/**
 * Speaks the gateway's own protocol over a WebSocket, as far as tests need it: requests, answers and events. The client
 * presents itself as the gateway's own backend, which loopback admits with the token alone.
 */

import { once } from "node:events";

type Json = ReturnType<typeof JSON.parse>;

interface Frame {
  readonly type: "req" | "res" | "event";
  readonly id?: string;
  readonly ok?: boolean;
  readonly event?: string;
  readonly payload?: Json;
  readonly error?: { readonly code: string; readonly message: string };
}

export interface Line {
  /** The answer's payload; throws the gateway's own code and message if it refuses. */
  call(method: string, params: object): Promise<Json>;
  /** The payload of the first matching event of that name since the connection was opened. */
  event(name: string, matches: (payload: Json) => boolean): Promise<Json>;
  close(): void;
}

/** Everything on the connection ends at one deadline. */
export async function openLine(url: string, token: string, timeoutMs: number): Promise<Line> {
  const socket = new WebSocket(url);
  const frames: Frame[] = [];
  const arrived = new EventTarget();
  const over = new AbortController();
  const end = (why: string): void => over.abort(new Error(`${url}: ${why}`));
  socket.addEventListener("message", ({ data }) => {
    frames.push(JSON.parse(String(data)));
    arrived.dispatchEvent(new Event("frame"));
  });
  socket.addEventListener("close", ({ code, reason }) => end(`the gateway hung up: ${code} ${reason}`));
  socket.addEventListener("error", () => end("no connection to the gateway"));
  const deadline = setTimeout(() => end(`nothing came within ${timeoutMs} ms`), timeoutMs);

  const frame = async (matches: (frame: Frame) => boolean): Promise<Frame> => {
    for (;;) {
      const found = frames.find(matches);
      if (found) return found;
      over.signal.throwIfAborted();
      await once(arrived, "frame", { signal: over.signal }).catch(() => over.signal.throwIfAborted());
    }
  };
  let calls = 0;
  const line: Line = {
    async call(method, params) {
      const id = String(++calls);
      socket.send(JSON.stringify({ type: "req", id, method, params }));
      const { ok, payload, error } = await frame((frame) => frame.type === "res" && frame.id === id);
      if (ok !== true) throw new Error(`${method}: ${error?.code} ${error?.message}`);
      return payload;
    },
    async event(name, matches) {
      return (await frame(({ event, payload }) => event === name && matches(payload))).payload;
    },
    close() {
      clearTimeout(deadline);
      socket.close();
    },
  };
  try {
    await line.event("connect.challenge", () => true);
    await line.call("connect", {
      minProtocol: 4,
      maxProtocol: 4,
      client: { id: "gateway-client", version: "1.0.0", platform: process.platform, mode: "backend" },
      role: "operator",
      scopes: ["operator.admin", "operator.read", "operator.write"],
      auth: { token },
    });
    return line;
  } catch (error) {
    line.close();
    throw error;
  }
}
