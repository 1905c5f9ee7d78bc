/** Serves the explorer on loopback, until it is closed. */

import { setTimeout as sleep } from "node:timers/promises";
import { createAdaptorServer } from "@hono/node-server";
import { LcmError } from "../core/base/errors.ts";
import { createApp, type Explorer } from "./app.ts";
import { createSecrets } from "./guard.ts";

export interface Serving extends Omit<Explorer, "secrets"> {
  /** 0 for any free one. */
  readonly listenOn: number;
}

export interface Served {
  readonly port: number;
  /** With the secret. */
  readonly link: string;
  close(): Promise<void>;
}

const headersTimeoutMs = 10_000;
const requestTimeoutMs = 30_000;
const lastWordsMs = 500;

export async function serveExplorer({ listenOn, ...given }: Serving): Promise<Served> {
  const secrets = createSecrets();
  const app = createApp({ ...given, secrets });
  const server = createAdaptorServer({
    fetch: app.fetch,
    hostname: "127.0.0.1",
    overrideGlobalObjects: false,
    serverOptions: { headersTimeout: headersTimeoutMs, requestTimeout: requestTimeoutMs, maxHeaderSize: 16_384 },
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => reject(refusePort(error, listenOn)));
    server.listen(listenOn, "127.0.0.1", resolve);
  });
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : listenOn;
  return {
    port,
    link: `http://127.0.0.1:${port}/?key=${secrets.key}`,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      await app.close();
      // Pages get their last event; whoever does not read it is not waited for.
      await Promise.race([closed, sleep(lastWordsMs, undefined, { ref: false })]);
      if ("closeAllConnections" in server) server.closeAllConnections();
      await closed;
    },
  };
}

function refusePort(error: Error, port: number): Error {
  if (!("code" in error)) return error;
  if (error.code === "EADDRINUSE")
    return new LcmError("conflict", `another program listens on port ${port}`, {
      hint: "choose another one with --port, or leave it out to get a free one",
      cause: error,
    });
  if (error.code !== "EACCES") return error;
  return new LcmError("denied", `this user may not listen on port ${port}`, {
    hint: "choose one above 1023",
    cause: error,
  });
}
