/** Serves the explorer over a database file, and talks to it as a browser would, or as nobody should. */

import { request as httpRequest } from "node:http";
import type { IncomingHttpHeaders } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { Timestamp } from "../../src/core/base/time.ts";
import type { Failure, Job, Reads, Writes } from "../../src/web/contract.ts";
import { assetsFrom } from "../../src/web/assets.ts";
import { serveExplorer } from "../../src/web/server.ts";
import { portOver, type Ground as PortGround } from "../support/robot.ts";

export interface Answered {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface Asked {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal;
}

export interface Explorer {
  readonly port: number;
  readonly link: string;
  /** The `Cookie` header of a browser that has opened the link. */
  readonly cookie: string;
  /** What the server has told its terminal. */
  readonly bugs: readonly string[];
  /** Without a cookie, unless the headers have one. */
  readonly ask: (asked: Asked) => Promise<Answered>;
  readonly read: <Name extends keyof Reads>(name: Name, query: Reads[Name]["query"]) => Promise<Reads[Name]["answer"]>;
  readonly refusedRead: (name: string, query?: object) => Promise<Failure & { readonly status: number }>;
  readonly write: <Name extends keyof Writes>(
    name: Name,
    body: Writes[Name]["body"],
  ) => Promise<Writes[Name]["answer"]>;
  readonly refusedWrite: (name: string, body: unknown) => Promise<Failure & { readonly status: number }>;
  /** Waits until the job has ended. */
  readonly ended: (job: Job) => Promise<Job>;
  /** Collects events until they satisfy, then disconnects. */
  readonly events: (
    query: string,
    until: (seen: readonly Seen[]) => boolean,
    meanwhile: () => Promise<void>,
  ) => Promise<readonly Seen[]>;
}

export interface Seen {
  readonly event: string;
  readonly data: unknown;
}

/** Two files are enough for what the server does with them. */
const scriptName = "main-ABCDEFGH.js";
export const testAssets = assetsFrom(
  { scripts: [scriptName], styles: ["main-HGFEDCBA.css"], files: [scriptName, "main-HGFEDCBA.css"] },
  (name) => new TextEncoder().encode(`/* ${name} */`),
);

export interface Options extends Omit<PortGround, "readOnly"> {
  readonly write?: boolean;
}

export async function withExplorer<T>(
  path: string,
  { write = false, ...ground }: Options,
  work: (explorer: Explorer) => Promise<T>,
): Promise<T> {
  const port = portOver(path, { ...ground, readOnly: !write });
  const bugs: string[] = [];
  const clock = { now: () => new Date().toISOString() as Timestamp };
  const about = { version: "1.2.3", zone: "UTC", clock };
  const onBug = (words: string): void => void bugs.push(words);
  const served = await serveExplorer({ port, assets: testAssets, about, listenOn: 0, onBug });
  try {
    return await work(await createClient(served, bugs));
  } finally {
    await served.close();
    await port.close();
  }
}

async function createClient(
  { port, link }: { readonly port: number; readonly link: string },
  bugs: readonly string[],
): Promise<Explorer> {
  const ask = async (asked: Asked): Promise<Answered> => await send(port, asked);
  const { headers } = await ask({ path: new URL(link).pathname + new URL(link).search });
  const cookie = headers["set-cookie"]?.[0]?.split(";")[0] ?? "";
  const own = { cookie, host: `127.0.0.1:${port}` };
  const get = async (name: string, query: object): Promise<Answered> => {
    const words = new URLSearchParams(
      Object.entries(query).flatMap(([field, value]) => (value === undefined ? [] : [[field, String(value)]])),
    );
    return await ask({ path: `/api/${name}?${words.toString()}`, headers: own });
  };
  const post = async (name: string, body: unknown): Promise<Answered> =>
    await ask({
      method: "POST",
      path: `/api/${name}`,
      headers: { ...own, "content-type": "application/json", origin: `http://127.0.0.1:${port}` },
      body: JSON.stringify(body),
    });
  const client: Explorer = {
    port,
    link,
    cookie,
    bugs,
    ask,
    read: async (name, query) => valueOf(await get(name, query)),
    refusedRead: async (name, query = {}) => refusalOf(await get(name, query)),
    write: async (name, body) => valueOf(await post(name, body)),
    refusedWrite: async (name, body) => refusalOf(await post(name, body)),
    async ended(job) {
      let now = job;
      while (now.result === null && now.failure === null) {
        await sleep(20);
        now = await client.read("job", { id: job.id });
      }
      return now;
    },
    async events(query, until, meanwhile) {
      const leaving = new AbortController();
      const seen: Seen[] = [];
      const connected = Promise.withResolvers<void>();
      const reading = listen({ port, path: `/api/events?${query}`, headers: own, signal: leaving.signal }, (text) => {
        connected.resolve();
        seen.push(...eventsIn(text));
        if (until(seen)) leaving.abort();
      });
      await connected.promise;
      await meanwhile();
      await reading;
      return seen;
    },
  };
  return client;
}

function valueOf({ status, text }: Answered) {
  if (status !== 200) throw new Error(`status ${status}: ${text}`);
  return JSON.parse(text);
}

const refusalOf = ({ status, text }: Answered): Failure & { readonly status: number } => ({
  ...JSON.parse(text).error,
  status,
});

/** Not `fetch`, which sets the host itself. */
async function send(port: number, { method = "GET", path, headers = {}, body, signal }: Asked): Promise<Answered> {
  return await new Promise((resolve, reject) => {
    const sent = httpRequest(
      { host: "127.0.0.1", port, method, path, headers, agent: false, ...(signal && { signal }) },
      (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (piece: string) => (text += piece));
        response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
        response.on("error", reject);
      },
    );
    sent.on("error", reject);
    sent.end(body);
  });
}

interface Listening {
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** Resolves when the server ends the stream, or the signal aborts. */
async function listen({ port, path, headers, signal }: Listening, onText: (text: string) => void): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const sent = httpRequest({ host: "127.0.0.1", port, path, headers, agent: false, signal }, (response) => {
      response.setEncoding("utf8");
      let rest = "";
      response.on("data", (piece: string) => {
        const whole = (rest + piece).split("\n\n");
        rest = whole.pop() ?? "";
        for (const each of whole) onText(each);
      });
      response.on("end", resolve);
      response.on("error", () => resolve());
    });
    sent.on("error", (error) => (signal.aborted ? resolve() : reject(error)));
    sent.end();
  });
}

function eventsIn(text: string): readonly Seen[] {
  const field = (name: string): string | undefined => new RegExp(`^${name}: (.*)$`, "m").exec(text)?.[1];
  const [event, data] = [field("event"), field("data")];
  return event === undefined ? [] : [{ event, data: JSON.parse(data ?? "null") }];
}
