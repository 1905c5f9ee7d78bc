/**
 * Decides who is answered. The server listens on loopback, but any program of this machine and any page in the browser
 * can reach that: a request must name us as its host, must not come from another page, and must bring the secret.
 */

import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { Refused } from "./failures.ts";

export interface Secrets {
  /** In the printed link. */
  readonly key: string;
  /** What the browser brings once it has shown the key. */
  readonly cookie: string;
  /** Cookies do not know ports: each server has a name of its own. */
  readonly cookieName: string;
}

const random = (): string => randomBytes(32).toString("base64url");

export const createSecrets = (): Secrets => ({
  key: random(),
  cookie: random(),
  cookieName: `lcm_${randomBytes(6).toString("hex")}`,
});

/** In a time that does not depend on where they differ. */
export function isSame(given: string | null | undefined, secret: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return typeof given === "string" && timingSafeEqual(digest(given), digest(secret));
}

/** On every answer. Pages load from here alone, run no inline script, and cannot be framed. */
export const headers: Readonly<Record<string, string>> = {
  "Content-Security-Policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ].join("; "),
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
};

/** What of a request decides. */
export interface Asking {
  readonly method: string;
  readonly path: string;
  readonly header: (name: string) => string | undefined;
}

/** Throws unless it comes from our own page, or from no page. */
export function checkOrigin({ method, path, header }: Asking): void {
  const host = header("host") ?? "";
  // A name that an attacker has pointed at loopback is not one of these. The port may differ: ssh forwards another one.
  if (!/^(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?$/i.test(host))
    throw new Refused("denied", "this host name is not served", "open the link that `lcm web` printed");
  const origin = header("origin");
  if (origin !== undefined && origin !== `http://${host}`)
    throw new Refused("denied", "requests of other pages are refused");
  if (method !== "GET" && method !== "HEAD" && origin === undefined && header("sec-fetch-site") !== undefined)
    throw new Refused("denied", "requests without an origin are refused");
  const site = header("sec-fetch-site") ?? "none";
  // A link to us may be clicked anywhere; what it opens is ours.
  const isDocument = header("sec-fetch-mode") === "navigate" && header("sec-fetch-dest") === "document";
  const isOpened = method === "GET" && isDocument && !path.startsWith("/api/");
  if (site !== "same-origin" && site !== "none" && !isOpened)
    throw new Refused("denied", "requests of other pages are refused");
}

/** The value of our cookie; undefined if the browser has none. */
export function cookieIn(header: string | undefined, name: string): string | undefined {
  for (const pair of header?.split(";") ?? []) {
    const [key, value] = pair.split("=", 2);
    if (key?.trim() === name) return value?.trim();
  }
  return undefined;
}

export const cookieText = ({ cookieName, cookie }: Secrets): string =>
  `${cookieName}=${cookie}; Path=/; HttpOnly; SameSite=Strict`;
