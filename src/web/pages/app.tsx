/** The application: the frame around every view, what the address names inside it, and the help. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { followEvents, useConnection, useRead } from "./api.ts";
import { activeKeys, everywhere, keyName, listenToKeys, useKeys } from "./keys.ts";
import { Glossary } from "./parts/glossary.tsx";
import { arrive, Button, Dialog, FailureNote, Loading, type Typed } from "./parts/ui.tsx";
import { addressOf, follow, go, type Place, type View } from "./router.ts";
import { aheadOf, AroundContext, useAround } from "./session.ts";
import { currentTheme, setTheme, themes } from "./theme.ts";
import { ChangesView, ChangeView } from "./views/changes.tsx";
import { ConversationsView } from "./views/conversations.tsx";
import { CostView } from "./views/cost.tsx";
import { HealthView } from "./views/health.tsx";
import { FileView, MessagesView, MessageView, openId } from "./views/reading.tsx";
import { SearchView } from "./views/search.tsx";
import { SeenView } from "./views/seen.tsx";
import { SummaryView } from "./views/summary.tsx";
import { TimelineView } from "./views/timeline.tsx";
import { WhenView } from "./views/when.tsx";
import { setZone } from "./words.ts";

export function App() {
  const asked = useRead("session", {}, { live: false });
  const [place, setPlace] = useState(follow);
  const { value: session } = asked;
  const [aheadMs, setAhead] = useState(0);
  useEffect(() => {
    const onHash = (): void => {
      arrive();
      setPlace(follow());
    };
    addEventListener("hashchange", onHash);
    // The address may have changed before we listened.
    setPlace((before) => (before.hash === location.hash ? before : follow()));
    listenToKeys();
    followEvents();
    return () => removeEventListener("hashchange", onHash);
  }, []);
  useEffect(() => {
    if (session !== null) setAhead(aheadOf(session.now));
  }, [session]);
  if (asked.failure !== null)
    return (
      <main id="content" class="alone">
        <h1>lossless-claw</h1>
        <FailureNote failure={asked.failure} again={asked.again} />
      </main>
    );
  if (session === null)
    return (
      <main id="content" class="alone">
        <Loading what="the database" />
      </main>
    );
  setZone(session.zone);
  return (
    <AroundContext.Provider value={{ session, place, aheadMs }}>
      <Frame>
        <Viewed key={`${place.view} ${place.of}`} place={place} />
      </Frame>
    </AroundContext.Provider>
  );
}

const nav = [
  ["conversations", "Conversations"],
  ["search", "Search"],
  ["health", "Health"],
  ["changes", "Changes"],
] as const satisfies (readonly [View, string])[];

function Frame({ children }: { readonly children: ComponentChildren }) {
  const { place, session } = useAround();
  const [isHelp, setHelp] = useState(false);
  useKeys(everywhere, [
    { keys: ["?"], does: "this help", run: () => setHelp(true) },
    { keys: ["/"], does: "search", run: () => go(addressOf("search")) },
    { keys: ["g"], does: "go to an id", run: () => document.getElementById("go")?.focus() },
    { keys: ["1"], does: "conversations", run: () => go(addressOf("conversations")) },
    { keys: ["2"], does: "search", run: () => go(addressOf("search")) },
    { keys: ["3"], does: "health", run: () => go(addressOf("health")) },
    { keys: ["4"], does: "changes", run: () => go(addressOf("changes")) },
    { keys: ["m"], does: "dark, light, or as the system", run: nextTheme },
    { keys: ["Backspace"], does: "back", run: () => history.back() },
  ]);
  useEffect(() => {
    setHelp(false);
    scrollTo(0, 0);
  }, [place.view, place.of]);
  return (
    <>
      <a class="skip" href="#content" onClick={skip}>
        Skip to the content
      </a>
      <header class="top">
        <a class="brand" href={addressOf("conversations")}>
          <span aria-hidden="true">◆</span> lossless-claw
        </a>
        <nav aria-label="Main">
          {nav.map(([view, words]) => (
            <a
              key={view}
              href={addressOf(view)}
              aria-current={place.view === view && place.of === "" ? "page" : undefined}
            >
              {words}
            </a>
          ))}
        </nav>
        <GoTo />
        <ThemeButton />
        <Button class="quiet" aria-label="Help" onClick={() => setHelp(true)}>
          ?
        </Button>
      </header>
      <main id="content" tabIndex={-1}>
        {children}
      </main>
      <footer class="bottom">
        <Connected /> <span class="clip">{session.path}</span>
        <span>{session.readOnly === null ? "changes allowed" : "read only"}</span>
        <span>times in {session.zone}</span>
        <Button class="quiet small" onClick={() => setHelp(true)}>
          What the words mean
        </Button>
        <span>lossless-claw {session.version}</span>
      </footer>
      {isHelp && <Help onClose={() => setHelp(false)} />}
    </>
  );
}

/** The address stays, since it names the view. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

function Viewed({ place }: { readonly place: Place }) {
  switch (place.view) {
    case "conversations":
      return <ConversationsView />;
    case "timeline":
      return <TimelineView />;
    case "messages":
      return <MessagesView />;
    case "message":
      return <MessageView />;
    case "summary":
      return <SummaryView />;
    case "file":
      return <FileView />;
    case "seen":
      return <SeenView />;
    case "when":
      return <WhenView />;
    case "search":
      return <SearchView />;
    case "health":
      return <HealthView />;
    case "cost":
      return <CostView />;
    case "changes":
      return <ChangesView />;
    case "change":
      return <ChangeView />;
  }
}

// ── In the frame ─────────────────────────────────────────────────────────────────────────────────────────────────────

function GoTo() {
  const [id, setId] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const { place } = useAround();
  useEffect(() => setProblem(null), [place]);
  const open = async (): Promise<void> => {
    if (id.trim() === "") return;
    const why = await openId(id);
    setProblem(why);
    if (why !== null) return;
    setId("");
    // Where the view stays, so does its heading.
    document.querySelector<HTMLElement>("h1")?.focus();
  };
  return (
    <form
      class="goto"
      onSubmit={(event) => {
        event.preventDefault();
        void open();
      }}
    >
      <input
        id="go"
        type="text"
        aria-label="Go to an id, such as msg_1-42, a summary, a file or a prompt"
        aria-invalid={problem !== null}
        placeholder="Go to an id …"
        autocomplete="off"
        spellcheck={false}
        value={id}
        onInput={(event: Typed) => {
          setProblem(null);
          setId(event.currentTarget.value);
        }}
      />
      {problem !== null && (
        <span class="goto-problem" role="alert">
          {problem}
        </span>
      )}
    </form>
  );
}

const connectionWords = {
  connecting: "connecting …",
  live: "live",
  lost: "connection lost, trying again …",
  ended: "the server has ended; start `lcm web` again",
} as const;

function Connected() {
  const connection = useConnection();
  return (
    <span class={`connection ${connection}`} role="status">
      <span aria-hidden="true">{connection === "live" ? "●" : "○"}</span> {connectionWords[connection]}
    </span>
  );
}

function nextTheme(): void {
  setTheme(themes[(themes.indexOf(currentTheme()) + 1) % themes.length] ?? "system");
}

const themeWords = { system: "◐ system", dark: "● dark", light: "○ light" } as const;

function ThemeButton() {
  const [theme, setShown] = useState(currentTheme());
  useEffect(() => {
    const root = new MutationObserver(() => setShown(currentTheme()));
    root.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    return () => root.disconnect();
  }, []);
  return (
    <Button class="quiet theme" aria-label={`Colours: ${theme}`} onClick={nextTheme}>
      {themeWords[theme]}
    </Button>
  );
}

function Help({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog title="Keys and words" onClose={onClose}>
      <div class="help">
        <section aria-label="Keys">
          {activeKeys().map(({ title, keys }) => (
            <section key={title} aria-label={title}>
              <h3>{title}</h3>
              <dl class="keys">
                {keys.map(({ keys: names, does }) => (
                  <div key={names.join()}>
                    <dt>
                      {names.map((name) => (
                        <kbd key={name}>{keyName(name)}</kbd>
                      ))}
                    </dt>
                    <dd>{does}</dd>
                  </div>
                ))}
              </dl>
            </section>
          ))}
          <p class="soft">
            On the timeline: the wheel or a pinch zooms, a drag selects, a click opens, a double click zooms in.
          </p>
        </section>
        <Glossary />
      </div>
    </Dialog>
  );
}
