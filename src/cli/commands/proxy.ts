/** `lcm proxy`: a proxy for several agents, and its status. */

import { LcmError } from "../../core/base/errors.ts";
import { proxyLines } from "../../format/proxy.ts";
import { flag, list, maybe, object, text, time, whole } from "./_json.ts";
import { collected, wholeNumber } from "./_options.ts";
import { defineCommand } from "./_session.ts";

const session = object({
  host: text,
  session: text,
  turns: whole,
  requests: whole,
  replaced: whole,
  refused: whole,
  bytesAsked: whole,
  bytesSent: whole,
  bytesKept: whole,
  tokensInput: whole,
  tokensCached: whole,
  tokensSaved: whole,
  whyUnchanged: text,
  lastAt: time,
});

const schema = object({
  proxies: list(
    object({
      program: text,
      pid: whole,
      port: whole,
      startedAt: time,
      endedAt: maybe(time),
      isRunning: flag,
      sessions: list(session),
      problems: list(object({ at: time, doing: text, message: text })),
    }),
  ),
});

export const proxyCommand = defineCommand({
  name: "proxy",
  json: schema,
  summary: "serve agents as a proxy before their model",
  description:
    "Listen on loopback and pass requests on to model providers. Every message is stored; when a conversation outgrows its " +
    "budget (proxyTokens), the old part of each request is replaced by summaries. Set an agent's base URL to one that is printed.",
  arguments: [["[action]", "status: what proxies do, and those of `lcm run`; the last that ended, too", ["status"]]],
  options: {
    port: [
      "--port <number>",
      "listen on this port (default: the same as before, at first 7717)",
      wholeNumber(1, 65_535),
    ],
    storeOnly: ["--store-only", "store everything and change no request"],
    upstream: [
      "--upstream <name=url>",
      "where requests go; repeat for several (default: anthropic, openai)",
      collected,
    ],
  },
  examples: [
    ["lcm proxy", "serve until Ctrl-C"],
    ["lcm proxy --upstream local=http://127.0.0.1:11434/v1", "pass requests on to a local model, too"],
    ["lcm proxy status", "turns, tokens saved, cache reads, and why requests were not changed"],
  ],
  notes: "To run one agent, `lcm run -- COMMAND` is simpler: it sets the base URL itself.",
  async run(session, { port, storeOnly = false, upstream = [] }, action) {
    const { context, database, print, printJson, json } = session;
    if (action !== "status") {
      await context.serveProxy({ database, port: port ?? null, storeOnly, upstreams: upstream, print });
      return;
    }
    const reports = await context.proxyReports(database.place.nearby);
    if (json) return printJson(schema, { proxies: reports });
    if (reports.length === 0)
      throw new LcmError("not_found", "no proxy has served this database", {
        hint: "start one with `lcm proxy`, or run an agent with `lcm run`",
      });
    for (const report of reports) for (const line of proxyLines(session, report)) print(line);
  },
});
