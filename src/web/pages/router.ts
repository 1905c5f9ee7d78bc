/** Addresses: what the part behind `#` names, so that every view can be shared, and back and forward work. */

/** A view by name, the thing it shows, and its settings. */
export interface Place {
  readonly view: View;
  /** A conversation, message, summary, file or change; empty if the view is about everything. */
  readonly of: string;
  readonly settings: Readonly<Record<string, string>>;
  /** The address that it was read from. */
  readonly hash: string;
}

export const views = [
  "conversations",
  "timeline",
  "messages",
  "message",
  "summary",
  "file",
  "seen",
  "when",
  "search",
  "health",
  "cost",
  "changes",
  "change",
] as const;
export type View = (typeof views)[number];

const isView = (word: string): word is View => views.some((view) => view === word);

/** `#/timeline/3?axis=time&from=1&to=99`; anything that is not a view is the first one. */
export function parsePlace(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split("?", 2);
  const [word = "", ...rest] = path.split("/");
  const settings = Object.fromEntries(new URLSearchParams(query));
  if (!isView(word)) return { view: "conversations", of: "", settings, hash };
  return { view: word, of: decoded(rest.join("/")), settings, hash };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A stray percent sign is just text.
    return text;
  }
}

type Settings = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** The address of a view. Settings that are null, undefined, false or empty are left out. */
export function addressOf(view: View, of: string | number = "", settings: Settings = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(settings))
    if (value !== null && value !== undefined && value !== false && value !== "") query.set(name, String(value));
  const path = of === "" ? `#/${view}` : `#/${view}/${encodeURIComponent(of).replaceAll("%2F", "/")}`;
  return query.size === 0 ? path : `${path}?${query}`;
}

/** The same view with other settings. */
export const withSettings = ({ view, of, settings }: Place, changed: Settings): string =>
  addressOf(view, of, { ...settings, ...changed });

export const go = (address: string): void => {
  location.hash = address;
};

/** The address that the page shows. A link that was followed just now is another one, until the page has heard of it. */
let shown = "";

/** The place of the address as it is now, which the page is about to show. */
export function follow(): Place {
  shown = location.hash;
  return parsePlace(shown);
}

/** Takes the place of the current entry in the history: for what changes all the time, such as a camera. */
export function replace(address: string): void {
  if (location.hash !== shown) return;
  history.replaceState(null, "", address);
  shown = location.hash;
}

/** The place with the settings that the address has by now: it follows a view without the place being told. */
export const placeNow = (place: Place): Place => ({
  ...place,
  settings: { ...place.settings, ...Object.fromEntries(new URLSearchParams(location.hash.split("?")[1] ?? "")) },
});
