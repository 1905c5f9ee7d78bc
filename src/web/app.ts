/** The explorer's routes: the link that is exchanged for a cookie, the pages, the API and the events. */

import { Hono, type Context } from "hono";
import { bodyLimit } from "hono/body-limit";
import { streamSSE } from "hono/streaming";
import { LcmError, errorText } from "../core/base/errors.ts";
import { isTooDeep, type Json } from "../core/base/json.ts";
import type { FileId } from "../core/model/types.ts";
import type { Doing, Port } from "../operator/port.ts";
import { pictureTypes } from "./blocks.ts";
import { lockedDocument, type Assets } from "./assets.ts";
import { createChanges } from "./changes.ts";
import { failed, failureOf, Refused } from "./failures.ts";
import { checkOrigin, cookieIn, cookieText, headers, isSame, type Secrets } from "./guard.ts";
import { createJobs } from "./jobs.ts";
import { createQuery, must } from "./query.ts";
import { mustHaveFile } from "./reading.ts";
import { createReads } from "./reads.ts";
import type { About, ReadTable, WriteTable } from "./tables.ts";
import { createWatch, type Event } from "./watch.ts";

export interface Explorer {
  readonly port: Port;
  readonly assets: Assets;
  readonly secrets: Secrets;
  readonly about: About;
  /** Receives errors that are ours: what happened, never what was asked. */
  readonly onBug: (words: string) => void;
}

const bodyMax = 64_000;
const eventsMax = 64;

export function createApp(explorer: Explorer) {
  const { port, assets, secrets, about } = explorer;
  const watch = createWatch(port);
  const jobs = createJobs(port, (job) => watch.tellAll({ name: "job", data: job }));
  const reads: ReadTable = createReads({ jobs, about });
  const writes: WriteTable = createChanges({ jobs, about });
  const perform = createPerformer(port, jobs.isBusy);
  const app = new Hono();
  app.onError((error, context) => answerFailure(error, context, explorer.onBug));
  app.notFound((context) => {
    const { method, path } = context.req;
    return failed({ code: "not_found", message: `nothing is served at ${method} ${path}`, hint: null });
  });
  app.use(async (context, next) => {
    guard(context, secrets);
    await next();
  });
  app.get("/api/events", (context) => events(context, watch));
  app.get("/api/picture", async (context) => {
    const id = must("id", createQuery(new URL(context.req.url).searchParams).file("id"));
    return await perform(context.req.raw.signal, async (doing) => await picture(id, doing));
  });
  app.get("/api/:name", async (context) => {
    const read = reads[nameIn(reads, context.req.param("name"))];
    const query = createQuery(new URL(context.req.url).searchParams);
    return context.json((await perform(context.req.raw.signal, async (doing) => await read(query, doing))) as object);
  });
  app.post("/api/:name", bodyLimit({ maxSize: bodyMax, onError: tooLarge }), async (context) => {
    const write = writes[nameIn(writes, context.req.param("name"))];
    const body = await bodyOf(context);
    return context.json(await perform(context.req.raw.signal, async (doing) => await write(body, doing)));
  });
  app.get("/assets/:name", (context) => {
    const asset = assets.files.get(context.req.param("name"));
    if (asset === undefined) return context.notFound();
    const caching = { "Cache-Control": "private, max-age=31536000, immutable" };
    return context.body(Uint8Array.from(asset.bytes), 200, { "Content-Type": asset.type, ...caching });
  });
  app.get("/", (context) => context.html(assets.document));
  return {
    fetch: async (request: Request) => await withHeaders(request, async () => await app.fetch(request), secrets),
    watch,
    /** Tells all pages, and stops what is under way. */
    async close(): Promise<void> {
      watch.tellAll({ name: "end", data: {} });
      await jobs.close();
    },
  };
}

/** Every answer has them, whatever it is. The link is exchanged for a cookie before anything else is looked at. */
async function withHeaders(request: Request, answer: () => Promise<Response>, secrets: Secrets): Promise<Response> {
  const response = exchanged(request, secrets) ?? (await answer());
  for (const [name, value] of Object.entries(headers)) response.headers.set(name, value);
  if (!response.headers.has("Cache-Control")) response.headers.set("Cache-Control", "no-store");
  return response;
}

/** `/?key=…` with our key leads to a clean address; null for any other request. */
function exchanged(request: Request, secrets: Secrets): Response | null {
  const { pathname, searchParams } = new URL(request.url);
  if (request.method !== "GET" || pathname !== "/" || !searchParams.has("key")) return null;
  try {
    checkOrigin({ method: "GET", path: pathname, header: (name) => request.headers.get(name) ?? undefined });
  } catch (error) {
    return failed(failureOf(error));
  }
  if (!isSame(searchParams.get("key"), secrets.key)) return locked();
  return new Response(null, { status: 303, headers: { Location: "/", "Set-Cookie": cookieText(secrets) } });
}

const locked = (): Response =>
  new Response(lockedDocument, { status: 401, headers: { "Content-Type": "text/html; charset=utf-8" } });

function guard(context: Context, secrets: Secrets): void {
  const { method, path } = context.req;
  const header = (name: string): string | undefined => context.req.header(name);
  checkOrigin({ method, path, header });
  if (!isSame(cookieIn(header("cookie"), secrets.cookieName), secrets.cookie))
    throw new Refused("unauthorized", "the secret is missing or wrong", "open the link that `lcm web` printed");
  if (!["GET", "HEAD", "POST"].includes(method)) throw new LcmError("invalid", `${method} is not a method here`);
}

function nameIn<Table extends object>(table: Table, name: string): keyof Table {
  const isKnown = (word: string): word is keyof Table & string => Object.hasOwn(table, word);
  if (!isKnown(name)) throw new LcmError("not_found", `the API has no ${JSON.stringify(name.slice(0, 40))}`);
  return name;
}

const tooLarge = (): never => {
  throw new Refused("too_large", `a request may have up to ${bodyMax} bytes`);
};

async function bodyOf(context: Context): Promise<Json> {
  if (!/^application\/json\b/.test(context.req.header("content-type") ?? ""))
    throw new LcmError("invalid", "a body must be application/json");
  try {
    const body: Json = JSON.parse(await context.req.text());
    if (!isTooDeep(body)) return body;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new LcmError("invalid", "the body is not JSON");
}

function answerFailure(error: Error, context: Context, onBug: (words: string) => void): Response {
  const { signal } = context.req.raw;
  const failure = failureOf(error, signal);
  if (failure.code === "bug") onBug(errorText(error));
  const isPage = context.req.method === "GET" && !/^\/(?:api|assets)\//.test(context.req.path);
  return failure.code === "unauthorized" && isPage ? locked() : failed(failure);
}

/** Connections that failed are given up, and closed when nothing is under way. */
function createPerformer(port: Port, isBusy: () => boolean) {
  let underWay = 0;
  return async <T>(signal: AbortSignal, work: (doing: Doing) => Promise<T>): Promise<T> => {
    underWay += 1;
    try {
      return await work({ port, signal, onProgress: () => undefined });
    } catch (error) {
      if (error instanceof LcmError && (error.code === "corrupt" || error.code === "unavailable")) port.renew();
      throw error;
    } finally {
      underWay -= 1;
      if (underWay === 0 && !isBusy()) port.rest();
    }
  };
}

/** Bytes are only ever served as a picture of a kind in which nothing runs. */
async function picture(id: FileId, { port }: Doing): Promise<Response> {
  const { store } = await port.reading();
  const { mimeType, encoding } = await mustHaveFile(store, id);
  const type = pictureTypes.find((each) => each === mimeType);
  if (type === undefined || encoding !== "base64") throw new LcmError("invalid", `${id} is not a picture`);
  const bytes = Uint8Array.from(Buffer.from(await store.fileContent(id), "base64"));
  return new Response(bytes, { headers: { "Content-Type": type } });
}

// ── Events ───────────────────────────────────────────────────────────────────────────────────────────────────────────

function events(context: Context, watch: ReturnType<typeof createWatch>): Response {
  if (watch.count() >= eventsMax) throw new LcmError("unavailable", "too many pages are open");
  const conversation = createQuery(new URL(context.req.url).searchParams).conversation() ?? null;
  return streamSSE(context, async (stream) => {
    const waiting: Event[] = [];
    let wake = Promise.withResolvers<void>();
    const stop = watch.listen(conversation, (event) => {
      waiting.push(event);
      wake.resolve();
    });
    stream.onAbort(() => wake.resolve());
    try {
      // A first line tells the browser that it is connected.
      await stream.write(": connected\n\n");
      for (let isOver = false; !isOver && !stream.aborted;) {
        await wake.promise;
        wake = Promise.withResolvers<void>();
        for (const { name, data } of waiting.splice(0)) {
          await stream.writeSSE({ event: name, data: JSON.stringify(data) });
          isOver ||= name === "end";
        }
      }
    } finally {
      stop();
    }
  });
}
