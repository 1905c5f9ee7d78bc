/**
 * Sends a request to the provider and the answer back, byte by byte as it comes. Redirects are passed on, never followed.
 * Headers live as long as the request, and are neither stored nor logged.
 */

import { Agent as HttpAgent, request as httpRequest } from "node:http";
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { pastProxies } from "./command-line.ts";
import type { Headers } from "./identity.ts";

type Env = Readonly<Record<string, string | undefined>>;

export interface Exchange {
  readonly agents: ReturnType<typeof createAgents>;
  /** Its path is put in front of the request's. */
  readonly upstream: URL;
  readonly path: string;
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
  /** What is sent; null to pass the client's body on as it comes. */
  readonly body: Buffer | null;
  /** Sent instead if the provider refuses `body`; null if that is the client's own. */
  readonly original: Buffer | null;
  /** Whether the answer is read: it must then not be compressed. */
  readonly isRead: boolean;
  readonly onRefused: () => void;
  /** The beginning of an answer; what it returns gets its pieces. */
  readonly onAnswer: (status: number, headers: Headers) => AnswerReader | null;
}

export interface AnswerReader {
  piece(bytes: Buffer): void;
  /** False if the answer was cut off. */
  end(isWhole: boolean): void;
}

/** Of a request or an answer. Node's own limit is lower than that of providers. */
export const headerBytesMax = 256_000;

/** The way out of this machine is the one that the environment names, as it is for the agent itself. */
export function createAgents(env: Env) {
  const options = { keepAlive: true, proxyEnv: { ...env, ...pastProxies(env) } };
  return { "http:": new HttpAgent(options), "https:": new HttpsAgent(options) };
}

const refusals = new Set([400, 413, 422]);

/** Resolves when the exchange is over, whichever way. */
export async function forward(exchange: Exchange): Promise<void> {
  const { body, original, response, onRefused, onAnswer } = exchange;
  let answer = await ask(exchange, body);
  if (original !== null && refusals.has(answer?.statusCode ?? 0)) {
    answer?.destroy(); // What it says is not needed: the client's own body gets an answer of its own.
    onRefused();
    answer = await ask(exchange, original);
  }
  if (response.destroyed) return;
  const status = answer?.statusCode ?? 0;
  if (answer === null || status < 200) {
    answer?.destroy();
    return respond(response, 502, answer === null ? "the provider cannot be reached" : "the provider did not answer");
  }
  // What a status line may hold, Node does not always let us send.
  const reason = (answer.statusMessage ?? "").replace(/[^\t\x20-\x7e\x80-\xff]/g, "");
  response.writeHead(status, reason, passable(answer.headersDistinct));
  response.write(nothing); // The client must not wait for the first piece to learn the status.
  await passOn(answer, response, onAnswer(status, answer.headers));
}

/** Null if there is no answer, or nobody who waits for it. */
async function ask(exchange: Exchange, body: Buffer | null): Promise<IncomingMessage | null> {
  const { upstream, incoming, response } = exchange;
  if (response.destroyed) return null;
  const isSecure = upstream.protocol === "https:";
  const outgoing = (isSecure ? httpsRequest : httpRequest)({
    protocol: upstream.protocol,
    hostname: upstream.hostname.replace(/^\[|\]$/g, ""),
    port: upstream.port,
    method: incoming.method,
    path: pathUp(exchange),
    headers: headersUp(exchange, body),
    agent: exchange.agents[isSecure ? "https:" : "http:"],
    maxHeaderSize: headerBytesMax,
  });
  response.once("close", () => {
    if (!response.writableFinished) outgoing.destroy();
  });
  const answered = Promise.withResolvers<IncomingMessage | null>();
  outgoing.on("error", () => answered.resolve(null));
  outgoing.once("close", () => answered.resolve(null));
  outgoing.once("response", (answer) => {
    answer.on("error", () => undefined); // Whoever reads it finds out.
    answered.resolve(answer);
  });
  if (body === null) incoming.pipe(outgoing);
  else outgoing.end(body);
  return await answered.promise;
}

async function passOn(answer: IncomingMessage, response: ServerResponse, reader: AnswerReader | null): Promise<void> {
  let isWhole = false;
  try {
    for await (const piece of answer) {
      const bytes = piece as Buffer;
      const isFull = !response.write(bytes);
      reader?.piece(bytes);
      if (isFull) await roomIn(response);
    }
    isWhole = answer.complete;
  } catch {
    // One side has left in the middle of it.
  }
  reader?.end(isWhole);
  if (isWhole) response.end();
  else response.destroy();
}

const nothing = Buffer.alloc(0);

async function roomIn(response: ServerResponse): Promise<void> {
  await new Promise<void>((resolve) => {
    const go = (): void => {
      response.off("drain", go).off("close", go);
      resolve();
    };
    response.on("drain", go).on("close", go);
  });
}

/** They concern one connection, not the message. */
const perConnection = [
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];

function passable(headers: NodeJS.Dict<string[]>): OutgoingHttpHeaders {
  const named = (headers["connection"] ?? []).flatMap((names) => names.split(","));
  const dropped = new Set([...perConnection, ...named.map((name) => name.trim().toLowerCase())]);
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !dropped.has(name)));
}

function headersUp({ incoming, upstream, isRead }: Exchange, body: Buffer | null): OutgoingHttpHeaders {
  const { "content-length": length, "transfer-encoding": coding } = incoming.headers;
  const headers = passable(incoming.headersDistinct);
  headers["host"] = upstream.host;
  if (isRead) headers["accept-encoding"] = "identity";
  // Where the body ends is said by us, whatever else the client says: without it, a body would be read as a request.
  delete headers["content-length"];
  if (body !== null) headers["content-length"] = body.length;
  else if (coding !== undefined) headers["transfer-encoding"] = coding;
  else if (length !== undefined) headers["content-length"] = length;
  return headers;
}

function pathUp({ upstream, path }: Pick<Exchange, "upstream" | "path">): string {
  const base = upstream.pathname.replace(/\/$/, "");
  return base === "" && !path.startsWith("/") ? `/${path}` : base + path;
}

/** The same as an address. It begins with the upstream's origin, so that no path can name another host. */
export const urlUp = (exchange: Pick<Exchange, "upstream" | "path">): URL =>
  new URL(exchange.upstream.origin + pathUp(exchange));

/** An answer of our own, in the shape that both providers' clients read. */
export function respond(response: ServerResponse, status: number, message: string): void {
  const error = { type: "error", error: { type: "api_error", message: `lcm proxy: ${message}` } };
  response.writeHead(status, { "content-type": "application/json", connection: "close" });
  response.end(JSON.stringify(error));
}
