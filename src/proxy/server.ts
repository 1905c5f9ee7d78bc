/**
 * The proxy's HTTP server. It listens on loopback before it opens the database, and serves only who knows its secret path.
 * Whatever fails on our side, the request goes on unchanged.
 */

import { createHash, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { createAgents, forward, headerBytesMax, urlUp, respond } from "./forward.ts";
import { endpointOf } from "./identity.ts";
import { isForeign } from "./peer.ts";
import type { Service } from "./service.ts";

export interface ProxyOptions {
  readonly port: number;
  /** The first part of every path. */
  readonly secret: string;
  /** Where requests may go, by name. */
  readonly upstreams: Readonly<Record<string, string>>;
  readonly service: Service;
  /** Whether other users' programs are refused even if they know the secret, which may be on a command line. */
  readonly onlyOwn?: boolean;
  /** Names the proxies of the network, if there are any. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Bytes; larger bodies are passed on unread. */
  readonly bodyMax?: number | undefined;
}

export interface Proxy {
  readonly port: number;
  /** The base URL for clients of an upstream; `run` keeps the sessions of one program apart from others. */
  urlOf(upstream: string, run?: string): string;
  close(): Promise<void>;
}

const bodyMaxDefault = 256_000_000;
/** As long as providers wait: a client that sends its next request at the moment of closing would see it fail. */
const keepAliveMs = 300_000;

export async function startProxy(options: ProxyOptions): Promise<Proxy> {
  const { port, secret, upstreams, service, onlyOwn = false, env = {}, bodyMax = bodyMaxDefault } = options;
  const agents = createAgents(env);
  const targets = new Map(Object.entries(upstreams).map(([name, url]) => [name, new URL(url)]));
  const limits = { maxHeaderSize: headerBytesMax, keepAliveTimeout: keepAliveMs, shouldUpgradeCallback: isWebSocket };
  const server = createServer(limits, (incoming, response) => {
    void serve(incoming, response).catch((error: unknown) => {
      if (response.destroyed) return; // The client has left.
      service.report("serving a request", error);
      if (response.headersSent) response.destroy();
      else respond(response, 502, "the request could not be passed on");
    });
  });
  // Nothing here speaks WebSocket. A client that is told so at once goes on with plain requests.
  server.on("upgrade", (incoming, socket) => {
    socket.on("error", () => undefined);
    const status = isLocal(incoming) && isAllowed(incoming, secret) ? "426 Upgrade Required" : "404 Not Found";
    const answer = `HTTP/1.1 ${status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`;
    socket.end(answer, () => socket.destroy()); // A client that stays would keep the server from closing.
  });
  server.on("clientError", (_, socket) => socket.destroy());
  server.requestTimeout = 0;
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const { port: chosen } = server.address() as AddressInfo;

  async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    if (!isLocal(incoming)) return respond(response, 403, "only programs on this machine are served");
    if (!isAllowed(incoming, secret)) return respond(response, 404, "not found");
    if (onlyOwn && (await isOthers(incoming.socket)))
      return respond(response, 403, "only your own programs are served");
    const { run, upstream, path } = placeIn(incoming.url ?? "");
    if (upstream === "status" && incoming.method === "GET") return sendStatus(response, service);
    const target = targets.get(upstream);
    if (target === undefined) return respond(response, 404, `there is no upstream ${JSON.stringify(upstream)}`);
    const endpoint = isReadable(incoming, bodyMax) ? endpointOf(incoming.method, path) : null;
    const exchange = { agents, upstream: target, path, incoming, response };
    const body = endpoint === null ? null : await readBody(incoming, bodyMax);
    if (endpoint === null || body === null) {
      const unread = { body: null, original: null, isRead: false, onRefused: () => undefined, onAnswer: () => null };
      return await forward({ ...exchange, ...unread });
    }
    const url = urlUp(exchange);
    const served = await service.plan({ ...endpoint, url, headers: incoming.headers, body, run });
    const { changed, onRefused, onAnswer } = served;
    await forward({
      ...exchange,
      body: changed ?? body,
      original: changed === null ? null : body,
      isRead: !endpoint.isCount,
      onRefused,
      onAnswer,
    });
  }

  return {
    port: chosen,
    urlOf: (upstream, run) =>
      `http://127.0.0.1:${chosen}/${secret}${run === undefined ? "" : `/run-${run}`}/${upstream}`,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

/** Asked once per connection. */
const others = new WeakMap<Socket, Promise<boolean>>();

async function isOthers(socket: Socket): Promise<boolean> {
  const known = others.get(socket) ?? isForeign(socket);
  others.set(socket, known);
  return await known;
}

/** Browsers name the page that sends a request, and a name that was rebound is in `host`. */
function isLocal({ headers }: IncomingMessage): boolean {
  const isLoopback = /^(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?$/i.test(headers.host ?? "");
  return isLoopback && headers.origin === undefined && headers["sec-fetch-site"] === undefined;
}

function isAllowed({ url }: IncomingMessage, secret: string): boolean {
  const [, given = ""] = (url ?? "").split("/");
  return timingSafeEqual(digestOf(given), digestOf(secret));
}

const digestOf = (text: string): Buffer => createHash("sha256").update(text).digest();

/** `/SECRET[/run-NAME]/UPSTREAM/rest` */
function placeIn(url: string): { readonly run: string; readonly upstream: string; readonly path: string } {
  const [, run = "", upstream = "", path = ""] = /^\/[^/]+(?:\/run-([\w-]+))?\/([^/?]+)(.*)$/.exec(url) ?? [];
  return { run, upstream, path };
}

/** Other protocols that a client offers, such as HTTP/2, are left unused. */
const isWebSocket = ({ headers }: IncomingMessage): boolean => /websocket/i.test(headers.upgrade ?? "");

function isReadable({ headers }: IncomingMessage, bodyMax: number): boolean {
  const codings = [headers["content-encoding"] ?? "identity", headers["transfer-encoding"] ?? "chunked"];
  return codings.join() === "identity,chunked" && Number(headers["content-length"] ?? 0) <= bodyMax;
}

/** Null if it is too large; it can then still be read from its beginning. */
async function readBody(incoming: IncomingMessage, bodyMax: number): Promise<Buffer | null> {
  const announced = Number(incoming.headers["content-length"] ?? 0);
  let body: Buffer = Buffer.allocUnsafe(announced || firstBytes);
  let length = 0;
  for await (const piece of incoming.iterator({ destroyOnReturn: false })) {
    const bytes = piece as Buffer;
    if (length + bytes.length > body.length) body = grown(body, length + bytes.length);
    bytes.copy(body, length);
    length += bytes.length;
    if (length <= bodyMax) continue;
    incoming.unshift(body.subarray(0, length));
    return null;
  }
  return body.subarray(0, length);
}

const firstBytes = 65_536;

function grown(body: Buffer, least: number): Buffer {
  const larger = Buffer.allocUnsafe(Math.max(2 * body.length, least));
  body.copy(larger);
  return larger;
}

function sendStatus(response: ServerResponse, service: Service): void {
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify(service.status()));
}
