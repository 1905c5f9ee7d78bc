/** Search by words, by meaning if there is an embedder, or by a regular expression, with filters. */

import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { plural } from "../../../core/base/format.ts";
import { msToTimestamp, parseTimestamp, dayMs, type Timestamp } from "../../../core/base/time.ts";
import { roles, type ConversationId, type Role } from "../../../core/model/types.ts";
import type { Found, Hit, Reads } from "../../contract.ts";
import { useRead } from "../api.ts";
import { useKeys } from "../keys.ts";
import { Button, Choice, Empty, Field, Heading, Note, Select, Shown, useStill, When } from "../parts/ui.tsx";
import { addressOf, go, replace, withSettings } from "../router.ts";
import { useAround } from "../session.ts";
import { addressOfId, depthName, nameOfId } from "../words.ts";

type Query = Reads["search"]["query"];

const settingNames = ["q", "mode", "scope", "conversation", "family", "roles", "since", "until", "sort"] as const;
const filterNames = ["scope", "conversation", "roles", "since", "until", "sort"] as const;
type Settings = Readonly<Partial<Record<(typeof settingNames)[number], string>>>;

const limits = [30, 100, 200];

export function SearchView() {
  const { place, session } = useAround();
  const [settings, setSettings] = useState<Settings>(place.settings);
  const [more, setMore] = useState(0);
  const change = (changed: Settings): void => {
    const next = { ...settings, ...changed };
    setSettings(next);
    // A filter is a step that one can go back; what is typed is not.
    if (changed.q !== undefined || isHalfTyped(changed.since) || isHalfTyped(changed.until)) return;
    replace(withSettings(place, settings));
    go(withSettings(place, next));
  };
  const still = useStill(settings, 250);
  useLayoutEffect(() => setSettings(place.settings), [place]); // Before anything more is typed.
  useEffect(() => replace(withSettings(place, still)), [still]);
  const query = queryOf(still, limits[more] ?? 30);
  const asked = useRead("search", query, { keeps: true, live: false });
  useLayoutEffect(() => document.getElementById("words")?.focus(), []);
  useKeys("Search", [
    { keys: ["j", "ArrowDown"], does: "next hit", run: () => moveHit(1) },
    { keys: ["k", "ArrowUp"], does: "previous hit", run: () => moveHit(-1) },
  ]);
  return (
    <>
      <Heading title="Search">Search</Heading>
      <Form settings={settings} change={change} hasMeaning={session.hasMeaning} />
      {query === null ? (
        <Empty title="What are you looking for?">
          {session.hasMeaning
            ? "Words and meaning are searched together."
            : "Words are found in any form and any order; a question works, too."}{" "}
          Filters alone list what passes them, the newest first.
        </Empty>
      ) : (
        <Shown asked={asked} what="matches">
          {(found) => (
            <Results
              found={found}
              change={change}
              isLoading={asked.isLoading}
              settings={still}
              onMore={more < limits.length - 1 ? () => setMore(more + 1) : null}
            />
          )}
        </Shown>
      )}
    </>
  );
}

function moveHit(by: number): void {
  const hits = [...document.querySelectorAll<HTMLElement>(".hit a.hit-link")];
  const at = hits.findIndex((hit) => hit === document.activeElement);
  hits[Math.max(0, Math.min(hits.length - 1, at + by))]?.focus();
}

function queryOf(settings: Settings, limit: number): Query | null {
  const { q = "", mode, scope, conversation, family, roles: asked, since, until, sort } = settings;
  const isListing = q.trim() === "";
  // A conversation alone is where to search, not what for.
  if (isListing && countOf({ ...settings, conversation: "" }) === 0) return null;
  const [from, to] = [dateOf(since), dateOf(until)];
  return {
    // Without words, everything that the filters let pass.
    pattern: isListing ? "." : q,
    mode: isListing || mode === "regex" ? "regex" : "full_text",
    scope: scope === "messages" || scope === "summaries" || scope === "files" ? scope : "both",
    limit,
    ...(conversation === undefined || conversation === ""
      ? {}
      : { conversation: Number(conversation) as ConversationId }),
    ...(family === "true" ? { family: true } : {}),
    ...(asked === undefined || asked === "" ? {} : { roles: asked.split(",") as Role[] }),
    ...(from === null ? {} : { since: from }),
    // A day is searched to its end.
    ...(to === null ? {} : { before: msToTimestamp(Date.parse(to) + dayMs) }),
    ...(sort === "recency" || sort === "oldest" ? { sort } : {}),
  };
}

/** While a year is typed, a date has others. */
const isHalfTyped = (date: string | undefined): boolean =>
  date !== undefined && Number(date.slice(0, 4)) < 1970 && date !== "";

const countOf = (settings: Settings): number =>
  filterNames.filter((name) => name !== "sort" && (settings[name] ?? "") !== "").length;

const dateOf = (text: string | undefined): Timestamp | null => (text === undefined ? null : parseTimestamp(text));

interface FormProps {
  readonly settings: Settings;
  readonly change: (changed: Settings) => void;
  readonly hasMeaning: boolean;
}

function Form({ settings, change, hasMeaning }: FormProps) {
  const conversations = useRead("conversations", { limit: 200 }, { live: false });
  const asked = new Set((settings.roles ?? "").split(",").filter((role) => role !== ""));
  const toggle = (role: Role): void => {
    const next = asked.has(role) ? [...asked].filter((each) => each !== role) : [...asked, role];
    change({ roles: next.join() });
  };
  const known = conversations.value?.rows.map(
    ({ conversation: { id }, name }) => [String(id), `#${id} ${name}`] as const,
  );
  const count = countOf(settings);
  // On a phone they would push the matches off the screen.
  const [isOpen] = useState(matchMedia("(min-width: 720px)").matches);
  return (
    <form
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        moveHit(1);
      }}
    >
      <div class="tools">
        <Field
          id="words"
          size="grow"
          label={settings.mode === "regex" ? "Regular expression" : hasMeaning ? "Words, or what it is about" : "Words"}
          value={settings.q ?? ""}
          onInput={(q) => change({ q })}
        />
        <Choice
          label="Search by"
          value={settings.mode === "regex" ? "regex" : "words"}
          options={[
            ["words", hasMeaning ? "words and meaning" : "words"],
            ["regex", "regex"],
          ]}
          onChange={(mode) => change({ mode: mode === "regex" ? "regex" : "" })}
        />
      </div>
      <details class="filters" open={isOpen}>
        <summary>Filters{count === 0 ? "" : ` (${count} set)`}</summary>
        <Select
          label="Conversation"
          options={[["", "all of them"], ...(known ?? [])]}
          value={settings.conversation ?? ""}
          onChange={(conversation) => change({ conversation })}
        />
        <Select label="In" options={scopes} value={settings.scope ?? ""} onChange={(scope) => change({ scope })} />
        <Select label="Order" options={orders} value={settings.sort ?? ""} onChange={(sort) => change({ sort })} />
        <Field type="date" label="Since" value={settings.since ?? ""} onInput={(since) => change({ since })} />
        <Field type="date" label="Until" value={settings.until ?? ""} onInput={(until) => change({ until })} />
        <fieldset class="field">
          <legend>Said by</legend>
          <div class="choice">
            {roles.map((role) => (
              <Button key={role} aria-pressed={asked.has(role)} onClick={() => toggle(role)}>
                {role}
              </Button>
            ))}
          </div>
        </fieldset>
      </details>
    </form>
  );
}

const scopes = [
  ["", "messages and summaries"],
  ["messages", "messages"],
  ["summaries", "summaries"],
  ["files", "files"],
] as const;
const orders = [
  ["", "best first"],
  ["recency", "newest first"],
  ["oldest", "oldest first"],
] as const;

interface ResultsProps {
  readonly found: Found;
  readonly isLoading: boolean;
  readonly settings: Settings;
  readonly onMore: (() => void) | null;
  readonly change: FormProps["change"];
}

const noFilters = Object.fromEntries([...filterNames, "family"].map((name) => [name, ""]));

function Results({ found: { hits, notes, caveats }, isLoading, settings, onMore, change }: ResultsProps) {
  const isCut = caveats.some(({ kind }) => kind === "limit");
  const [first] = hits;
  const place = first?.hit.conversation ?? null;
  const isOne = hits.every(({ hit }) => hit.conversation === place);
  return (
    <section aria-label="Matches" aria-busy={isLoading}>
      <p role="status">
        {hits.length === 0
          ? "Nothing matches. "
          : `${isCut ? "The first " : ""}${plural(hits.length, "match", "matches")}`}
        {hits.length === 0 && countOf(settings) > 0 && (
          <Button class="small" onClick={() => change(noFilters)}>
            Search without filters
          </Button>
        )}
        {place !== null && (settings.q ?? "") !== "" && (
          <>
            {" "}
            ·{" "}
            <a href={addressOf("timeline", settings.conversation || place, { q: settings.q, mode: settings.mode })}>
              show {isOne ? "them" : `those of ${first?.where}`} on the timeline
            </a>
          </>
        )}
      </p>
      {notes.map((note, at) =>
        caveats[at]?.kind === "limit" ? null : (
          // The hint names options of the command line, which a page does not have.
          <Note key={note} words={note.replace(/; (?:pass|raise) --.*$/, "")}>
            {caveats[at]?.kind === "files" && (
              <>
                {" "}
                <Button class="small" onClick={() => change({ scope: "files" })}>
                  Search in files
                </Button>
              </>
            )}
          </Note>
        ),
      )}
      <ol class="hits">
        {hits.map((hit, at) => (
          <HitView key={at} hit={(settings.q ?? "") === "" ? { ...hit, matches: [] } : hit} />
        ))}
      </ol>
      {isCut && onMore !== null && <Button onClick={onMore}>Show more</Button>}
    </section>
  );
}

function HitView({ hit: { hit, where, snippet, matches } }: { readonly hit: Hit }) {
  const pieces: (readonly [string, boolean])[] = [];
  let done = 0;
  for (const [from, to] of matches) {
    pieces.push([snippet.slice(done, from), false], [snippet.slice(from, to), true]);
    done = to;
  }
  pieces.push([snippet.slice(done), false]);
  const name = hit.kind === "message" ? hit.role : hit.kind === "summary" ? depthName(hit.depth) : (hit.name ?? "file");
  const marked = [...new Set(pieces.flatMap(([text, isMatch]) => (isMatch ? [text] : [])))].join("\n");
  const address =
    hit.kind === "file"
      ? addressOf("file", hit.id, { line: Math.max(1, hit.line - 3), mark: marked })
      : `${addressOfId(hit.id)}${marked === "" ? "" : `?${new URLSearchParams({ mark: marked })}`}`;
  return (
    <li class="hit">
      <div class="message-line">
        <span class={hit.kind === "message" ? `role role-${hit.role}` : "role"}>{name}</span>
        <a class="id" href={address}>
          {nameOfId(hit.id)}
          {hit.kind === "file" && `, line ${hit.line}`}
        </a>
        <span class="soft small">
          <When at={hit.at} /> ·{" "}
          <a
            href={addressOf(
              "timeline",
              hit.conversation,
              hit.kind === "file"
                ? {}
                : { focus: hit.kind === "message" ? `msg_${hit.conversation}-${hit.seq}` : hit.id },
            )}
          >
            {where}
          </a>
        </span>
      </div>
      <p class="snippet" dir="auto">
        <a class="hit-link" href={address}>
          {pieces.map(([text, isMatch], at) => (isMatch ? <mark key={at}>{text}</mark> : text))}
        </a>
      </p>
    </li>
  );
}
