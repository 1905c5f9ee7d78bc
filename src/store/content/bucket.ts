/**
 * Keeps large content in an S3-compatible store, which all machines share. Content is stored under its final name before
 * a row names it. Requests are signed with the credentials of the environment, which are neither kept nor shown.
 */

import { createHash, createHmac } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { LcmError, errorText } from "../../core/base/errors.ts";
import type { ContentFacts, ContentStore, ListedContent } from "../../core/model/content-store.ts";
import { encode, lastNames, toListed, uriOf } from "./folder.ts";

export interface BucketOptions {
  /** `s3://bucket/prefix`. */
  readonly url: string;
  /** Of another store than Amazon's. */
  readonly endpoint: string | null;
  readonly env: Readonly<Record<string, string | undefined>>;
}

interface Bucket {
  /** The address of the bucket, without a slash at its end. */
  readonly base: URL;
  readonly prefix: string;
  readonly region: string;
  readonly keyId: string;
  readonly secret: string;
  readonly token: string | undefined;
}

/** Throws `invalid` for a URL that is none, and `denied` without credentials. */
export function openBucket(options: BucketOptions): ContentStore {
  const bucket = readBucket(options);
  const keyOf = (storageUri: string): string => bucket.prefix + lastNames(storageUri).join("/");
  const get = async (storageUri: string): Promise<Buffer | null> => {
    const answer = await ask(bucket, { method: "GET", key: keyOf(storageUri) });
    return answer.status === 404 ? null : answer.body;
  };
  const put = async (storageUri: string, body: Buffer): Promise<void> =>
    void (await ask(bucket, { method: "PUT", key: keyOf(storageUri), body }));
  const remove = async (storageUri: string): Promise<void> =>
    void (await ask(bucket, { method: "DELETE", key: keyOf(storageUri) }));
  return {
    async put(id, file) {
      const storageUri = uriOf(id, file);
      const { bytes, size } = encode(file.content, file.encoding);
      await put(storageUri, bytes);
      let isKept = false;
      return {
        storageUri,
        ...size,
        keep: () => void (isKept = true),
        drop: async () => (isKept ? undefined : await remove(storageUri)),
      };
    },
    async read({ id, storageUri, encoding }) {
      const bytes = await get(storageUri);
      if (bytes !== null) return bytes.toString(encoding);
      throw new LcmError("unavailable", `the content of ${id} is not in the bucket`, {
        hint: "restore it from a backup of the bucket",
      });
    },
    path: async () => null,
    facts: async (storageUri) => await factsOf(bucket, keyOf(storageUri)).catch(() => null),
    oddity: async () => null,
    async replace(storageUri, content, encoding) {
      const { bytes, size } = encode(content, encoding);
      await put(storageUri, bytes);
      return size;
    },
    remove,
    list: async (conversation) => await list(bucket, conversation),
    contains: async (storageUri, texts) => {
      const bytes = await get(storageUri).catch(() => null);
      return bytes !== null && texts.some((text) => bytes.includes(text));
    },
  };
}

function readBucket({ url, endpoint, env }: BucketOptions): Bucket {
  const [, name = "", path = ""] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*))?$/.exec(url) ?? [];
  const region = env["AWS_REGION"] ?? env["AWS_DEFAULT_REGION"] ?? "us-east-1";
  const base = endpoint === null ? `https://${name}.s3.${region}.amazonaws.com` : `${endpoint}/${name}`;
  const address = URL.parse(base.replaceAll(/(?<!:)\/+/g, "/").replace(/\/$/, ""));
  if (name === "" || address === null || !/^https?:$/.test(address.protocol))
    throw new LcmError("invalid", "the place of shared files cannot be used", {
      hint: "write it as s3://bucket/prefix, with the base URL of a store that is not Amazon's in sharedFilesEndpoint",
    });
  const { AWS_ACCESS_KEY_ID: keyId, AWS_SECRET_ACCESS_KEY: secret, AWS_SESSION_TOKEN: token } = env;
  if (!keyId || !secret)
    throw new LcmError("denied", `no credentials for ${url}`, {
      hint: "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment",
    });
  const prefix = path.replace(/^\/+|\/+$/g, "");
  return { base: address, prefix: prefix === "" ? "" : `${prefix}/`, region, keyId, secret, token };
}

async function factsOf(bucket: Bucket, key: string): Promise<ContentFacts | null> {
  const { status, headers } = await ask(bucket, { method: "HEAD", key });
  if (status === 404) return null;
  return {
    bytes: Number(headers.get("content-length")),
    writtenAtMs: Date.parse(headers.get("last-modified") ?? "") || 0,
  };
}

/** A page has at most 1,000 names. */
const pagesMax = 100_000;

async function list(bucket: Bucket, conversation: number | null): Promise<readonly ListedContent[]> {
  const found: ListedContent[] = [];
  const prefix = bucket.prefix + (conversation === null ? "" : `${conversation}/`);
  let after = "";
  for (let page = 0; page < pagesMax; page++) {
    const query = { "list-type": "2", prefix, ...(after === "" ? {} : { "start-after": after }) };
    const text = (await ask(bucket, { method: "GET", key: "", query })).body.toString();
    const keys = [...text.matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key = ""]) => key);
    for (const key of keys) {
      const [folder = "", name = "", ...others] = key.slice(bucket.prefix.length).split("/");
      if (/^\d+$/.test(folder) && others.length === 0) found.push(...toListed(folder)(name));
    }
    after = keys.at(-1) ?? "";
    if (!/<IsTruncated>true</.test(text)) break;
  }
  return found;
}

interface Request {
  readonly method: "GET" | "HEAD" | "PUT" | "DELETE";
  readonly key: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
}

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
}

const triesMax = 4;
const timeoutMs = 120_000;

/** Returns a success or a 404. Tries again if the store is busy or cannot be reached. */
async function ask(bucket: Bucket, request: Request): Promise<Answer> {
  for (let tries = 1; ; tries++) {
    const answer = await send(bucket, request).catch((cause: unknown) => unreachable(bucket, errorText(cause), cause));
    if (!(answer instanceof LcmError)) {
      if (answer.status < 300 || (answer.status === 404 && request.key !== "")) return answer;
      if (answer.status === 403 || answer.status === 401)
        throw new LcmError("denied", `the store at ${bucket.base.host} refused our credentials`, {
          hint: "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and what this key may do in the bucket",
        });
      if (answer.status < 500 && answer.status !== 429)
        throw unreachable(bucket, `it answered ${request.method} with status ${answer.status}`);
    }
    if (tries === triesMax) throw answer instanceof LcmError ? answer : unreachable(bucket, `status ${answer.status}`);
    await sleep(100 * 2 ** tries);
  }
}

const unreachable = ({ base }: Bucket, what: string, cause?: unknown): LcmError =>
  new LcmError("unavailable", `the store at ${base.host} cannot be used: ${what}`, {
    cause,
    hint: "check sharedFiles and sharedFilesEndpoint, and that the bucket exists",
  });

async function send(bucket: Bucket, request: Request): Promise<Answer> {
  const { method, key, query = {}, body } = request;
  const url = new URL(bucket.base);
  url.pathname = `${url.pathname.replace(/\/$/, "")}/${key.split("/").map(encodePart).join("/")}`;
  url.search = canonicalQuery(query);
  const signal = AbortSignal.timeout(timeoutMs);
  const headers = signed(bucket, { method, url, body: body ?? Buffer.alloc(0), at: new Date() });
  const answer = await fetch(url, {
    method,
    headers,
    signal,
    redirect: "manual", // The signature is for this host alone.
    ...(body === undefined ? {} : { body: Uint8Array.from(body) }),
  });
  return { status: answer.status, headers: answer.headers, body: Buffer.from(await answer.arrayBuffer()) };
}

// ── AWS Signature Version 4 ──────────────────────────────────────────────────────────────────────────────────────────

const encodePart = (text: string): string =>
  encodeURIComponent(text).replaceAll(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);

const canonicalQuery = (query: Readonly<Record<string, string>>): string =>
  Object.entries(query)
    .map(([name, value]) => `${encodePart(name)}=${encodePart(value)}`)
    .toSorted()
    .join("&");

const sha256 = (data: string | Buffer): string => createHash("sha256").update(data).digest("hex");
const hmac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();

interface Unsigned {
  readonly method: string;
  readonly url: URL;
  readonly body: Buffer;
  readonly at: Date;
}

/** The headers of a signed request. */
export function signed(
  { region, keyId, secret, token }: Pick<Bucket, "region" | "keyId" | "secret" | "token">,
  { method, url, body, at }: Unsigned,
): Readonly<Record<string, string>> {
  const time = at.toISOString().replaceAll(/[-:]|\.\d+/g, "");
  const day = time.slice(0, 8);
  const hash = sha256(body);
  const headers: Record<string, string> = {
    host: url.host,
    "x-amz-content-sha256": hash,
    "x-amz-date": time,
    ...(token === undefined ? {} : { "x-amz-security-token": token }),
  };
  const names = Object.keys(headers).toSorted();
  const canonical = [
    method,
    url.pathname,
    url.search.slice(1),
    ...names.map((name) => `${name}:${headers[name]}`),
    "",
    names.join(";"),
    hash,
  ].join("\n");
  const scope = `${day}/${region}/s3/aws4_request`;
  const toSign = ["AWS4-HMAC-SHA256", time, scope, sha256(canonical)].join("\n");
  const key = ["s3", "aws4_request"].reduce(hmac, hmac(hmac(`AWS4${secret}`, day), region));
  const signature = hmac(key, toSign).toString("hex");
  const { host: _, ...sent } = headers;
  return {
    ...sent,
    authorization: `AWS4-HMAC-SHA256 Credential=${keyId}/${scope}, SignedHeaders=${names.join(";")}, Signature=${signature}`,
  };
}
