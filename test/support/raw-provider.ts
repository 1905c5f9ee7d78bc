/** A provider made of bare bytes, for what no real server would send, and a client that says what no real client would. */

import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

export interface RawProvider {
  readonly url: string;
  /** What has come since it was emptied, as latin1. */
  received: string;
  /** What happens when a request has come, as a whole unless `early`. */
  answer: (socket: Socket, request: string) => void;
  early: boolean;
  close(): Promise<void>;
}

export const plainAnswer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";

export async function startRawProvider(): Promise<RawProvider> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    let [all, from] = ["", 0];
    socket.on("error", () => undefined);
    socket.on("data", (bytes) => {
      all += bytes.toString("latin1");
      provider.received += bytes.toString("latin1");
      for (let length = lengthOf(all.slice(from)); length !== null; length = lengthOf(all.slice(from))) {
        provider.answer(socket, all.slice(from, from + length));
        from += length;
      }
      if (provider.early && from < all.length) provider.answer(socket, all.slice(from));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const provider: RawProvider = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received: "",
    answer: (socket) => socket.write(plainAnswer),
    early: false,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
  return provider;
}

/** Of the first request in it; null if that is not whole. */
function lengthOf(text: string): number | null {
  const head = text.indexOf("\r\n\r\n") + 4;
  if (head < 4) return null;
  const length = /\r\ncontent-length: *(\d+)/i.exec(text.slice(0, head))?.[1];
  const isChunked = /\r\ntransfer-encoding:.*chunked/i.test(text.slice(0, head));
  if (isChunked) {
    const end = text.indexOf("0\r\n\r\n", head);
    return end < 0 ? null : end + 5;
  }
  const end = head + Number(length ?? 0);
  return text.length < end ? null : end;
}

/** Sends these bytes and returns what comes back until the connection is closed, as latin1. */
export async function sayRaw(port: number, said: string | Buffer): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  let heard = "";
  socket.on("data", (bytes) => (heard += bytes.toString("latin1")));
  socket.on("error", () => undefined);
  socket.write(said);
  await once(socket, "close");
  return heard;
}
