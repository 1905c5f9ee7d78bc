/** Describes what proxies have done. */

import { formatBytes, formatCount, plural } from "../core/base/format.ts";
import { formatTimestamp } from "../core/base/time.ts";
import type { ProxyReport, ProxySession } from "../core/model/proxy-report.ts";
import type { Page } from "./page.ts";
import { oneLine } from "./safe-text.ts";

export function proxyLines({ paint, zone }: Pick<Page, "paint" | "zone">, report: ProxyReport): readonly string[] {
  const { program, pid, port, startedAt, endedAt, isRunning, sessions, problems } = report;
  const ended = endedAt === null ? "ended without a report: it was killed" : `ended ${formatTimestamp(endedAt, zone)}`;
  const state = isRunning ? paint.good(`running on port ${port}, process ${pid}`) : paint.soft(ended);
  return [
    `${paint.strong(oneLine(program))}, since ${formatTimestamp(startedAt, zone)}: ${state}`,
    ...(sessions.length === 0 ? [isRunning ? "  no requests yet" : "  no requests"] : sessions.flatMap(sessionLines)),
    ...problems.map(
      ({ at, doing, message }) =>
        `  ${paint.caution(`${formatTimestamp(at, zone)}  while ${oneLine(`${doing}: ${message}`)}`)}`,
    ),
  ];
}

function sessionLines(status: ProxySession): readonly string[] {
  const { host, session, turns, requests, replaced, refused, tokensInput, tokensCached, tokensSaved } = status;
  const counts = [
    plural(turns, "turn"),
    plural(requests, "request"),
    `${replaced} with summaries`,
    ...(refused === 0 ? [] : [`${refused} refused`]),
  ];
  const { bytesAsked, bytesSent, bytesKept, whyUnchanged } = status;
  return [
    `  ${oneLine(host)} ${oneLine(session)}: ${counts.join(", ")}`,
    `    sent ${formatBytes(bytesSent)} of ${formatBytes(bytesAsked)}, about ${formatCount(tokensSaved)} tokens saved`,
    `    ${share(bytesKept, bytesSent)} as in the request before; the provider read ${share(tokensCached, tokensInput)} ` +
      `of ${formatCount(tokensInput)} tokens from its cache`,
    ...(whyUnchanged === "" ? [] : [`    the last request was sent unchanged: ${oneLine(whyUnchanged)}`]),
  ];
}

const share = (part: number, all: number): string => (all === 0 ? "–" : `${Math.round((100 * part) / all)}%`);
