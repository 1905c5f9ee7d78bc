/** `lcm import --discover`: what the agents on this machine have left behind, and which of it to import. */

import { LcmError } from "../../core/base/errors.ts";
import { formatBytes, formatCount, withTilde, plural } from "../../core/base/format.ts";
import { parseWhen } from "../../core/base/parse-time.ts";
import { formatTimestamp, msToTimestamp, type Timestamp } from "../../core/base/time.ts";
import { oneLine } from "../../format/safe-text.ts";
import { table } from "../../format/table.ts";
import type { HostName } from "../../hosts/shared/rows/row-format.ts";
import { countSessions, findAgents, type FoundAgent, type Importable } from "../importables.ts";
import { about, maybe, object, text, whole } from "./_json.ts";
import { collected, type OptionsOf, type OptionTable } from "./_options.ts";
import type { Session } from "./_session.ts";

export const discoverFlags = {
  discover: ["--discover", "list what the agents on this machine have left behind, and import what you choose"],
  host: ["--host <name>", "with --discover: only claude-code, codex, opencode or pi; may be repeated", collected],
  since: ["--since <time>", "with --discover: only sessions that changed since then: 2026-02-17, yesterday, 30d"],
  yes: ["--yes", "with --discover: import them without asking"],
} as const satisfies OptionTable;

export const agentJson = object({
  host: text,
  name: text,
  folder: text,
  sessions: whole,
  bytes: whole,
  newest: about(maybe(text), "when the newest session changed"),
});

export interface ChosenSessions {
  readonly agents: readonly (Omit<ReturnType<typeof facts>, "newest"> & { readonly newest: Timestamp | null })[];
  readonly sessions: readonly (Importable & { readonly host: HostName })[];
}

/** Null if paths are imported instead. */
export async function chooseSessions(
  session: Session,
  options: OptionsOf<typeof discoverFlags>,
  paths: readonly string[],
): Promise<ChosenSessions | null> {
  const isDiscovering = options.discover === true;
  checkOptions(options, paths);
  if (!isDiscovering) return null;
  const { context, json } = session;
  const places = context.agents().filter(({ host }) => options.host?.includes(host) !== false);
  const since =
    options.since === undefined
      ? 0
      : Date.parse(parseWhen("--since", options.since, context.zone, context.clock.now()));
  const found = await findAgents(places, async (path) => await context.openCode(path));
  const agents = found
    .map((agent) => ({ ...agent, sessions: agent.sessions.filter(({ changedMs }) => changedMs >= since) }))
    .filter(({ sessions }) => sessions.length > 0);
  if (!json) printAgents(session, agents, places);
  const sessions: (Importable & { host: HostName })[] = [];
  for (const agent of agents) {
    const { host } = agent.place;
    if (await isChosen(session, options, agent)) sessions.push(...agent.sessions.map((each) => ({ ...each, host })));
  }
  if (sessions.length === 0 && agents.length > 0 && !json && options.yes !== true)
    session.note("nothing was imported; pass --yes to import all of it, or choose with --host");
  return { agents: agents.map(facts), sessions };
}

function checkOptions(options: OptionsOf<typeof discoverFlags>, paths: readonly string[]): void {
  const extra = (["host", "since", "yes"] as const).find((name) => options[name] !== undefined);
  if (options.discover !== true && extra !== undefined)
    throw new LcmError("invalid", `--${extra} belongs to --discover`, { hint: "add --discover, or remove it" });
  if (options.discover === true && paths.length > 0)
    throw new LcmError("invalid", "--discover takes no paths", { hint: "name the paths, or pass --discover" });
  if (options.discover !== true && paths.length === 0)
    throw new LcmError("invalid", "nothing to import", {
      hint: "name files or folders, or pass --discover to look for the agents on this machine",
    });
  const unknown = options.host?.find((name) => !["claude-code", "codex", "opencode", "pi"].includes(name));
  if (unknown !== undefined)
    throw new LcmError("invalid", `--host ${unknown} is not known`, {
      hint: "one of claude-code, codex, opencode, pi",
    });
}

async function isChosen(
  { context, json }: Session,
  options: OptionsOf<typeof discoverFlags>,
  { place, sessions }: FoundAgent,
): Promise<boolean> {
  if (options.yes === true) return true;
  if (json || !context.isInteractive) return false;
  return await context.confirm(`Import ${plural(countSessions(sessions), "session")} of ${place.name}?`, true);
}

type Places = readonly FoundAgent["place"][];

function facts({ place, sessions, bytes }: FoundAgent) {
  const { host, name, folder } = place;
  const newestMs = Math.max(...sessions.map(({ changedMs }) => changedMs));
  return { host, name, folder, sessions: countSessions(sessions), bytes, newest: msToTimestamp(newestMs) };
}

function printAgents({ print, note, paint, context }: Session, agents: readonly FoundAgent[], places: Places): void {
  if (agents.length === 0) {
    print(`no sessions of ${places.map(({ name }) => name).join(", ")} were found in`);
    for (const { folder } of places) print(`  ${oneLine(withTilde(folder, context.machine().home))}`);
    return note(paint.soft("sessions of OpenClaw are not listed: its plugin imports each on the session's next turn"));
  }
  const rows = agents
    .map(facts)
    .map(({ name, sessions, bytes, newest, folder }) => [
      name,
      formatCount(sessions),
      formatBytes(bytes),
      formatTimestamp(newest, context.zone),
      withTilde(folder, context.machine().home),
    ]);
  const columns = [
    { title: "agent" },
    { title: "sessions", align: "right" },
    { title: "size", align: "right" },
    { title: "newest" },
    { title: "folder", flexible: true },
  ] as const;
  for (const line of table(columns, rows, context.stdout.columns ?? null, paint)) print(line);
}
