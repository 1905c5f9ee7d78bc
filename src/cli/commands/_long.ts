/** The commands whose work grows with what is stored: what each does, what Ctrl-C or its time limit leaves, what then. */

export interface LongCommand {
  /** Shown with the time that has passed, while there is nothing to count. */
  readonly doing: string;
  /** What holds after it was stopped. */
  readonly kept: string;
  /** How to continue. */
  readonly next: string;
  /** Whether it ends its own work when stopped, and reports what was done. */
  readonly endsItself?: true;
  /** Whether its --timeout ends a part of its work, after which it reports what it has. */
  readonly limitsItself?: true;
}

const again = "run it again to continue";
const fromTheStart = "run it again; it starts from the beginning";
const unchanged = "nothing was changed";
/** One transaction changes everything or nothing. */
const allOrNothing = "a change that was not reported as done was not made";

export const longCommands = {
  adopt: { doing: "converting", kept: "the database is as it was, or converted as a whole", next: again },
  ask: {
    doing: "searching",
    kept: unchanged,
    next: "ask again, or about one --conversation",
    endsItself: true,
    limitsItself: true,
  },
  backup: { doing: "copying", kept: "no backup was made", next: fromTheStart },
  compact: { doing: "planning", kept: "summaries made so far are kept", next: again, endsItself: true },
  dissolve: { doing: "dissolving", kept: allOrNothing, next: "see `lcm history`, and run it again if it is not there" },
  doctor: {
    doing: "checking",
    kept: "nothing was changed, except for fixes reported as done",
    next: "run it again, or check one conversation with `lcm doctor CONVERSATION`",
  },
  export: {
    doing: "writing",
    kept: "a file named with --output is unchanged, and printed output is incomplete",
    next: fromTheStart,
  },
  forget: {
    doing: "searching",
    kept: "it is forgotten everywhere or nowhere",
    next: "run it again; it also finishes what was begun",
  },
  grep: {
    doing: "searching",
    kept: unchanged,
    next: "search one --conversation, or a time with --since and --before",
    limitsItself: true,
  },
  import: { doing: "importing", kept: "what was imported is stored", next: again },
  index: { doing: "indexing", kept: "what was indexed and embedded is stored", next: again, endsItself: true },
  map: { doing: "planning", kept: "answers so far are kept", next: again, endsItself: true },
  move: {
    doing: "comparing",
    kept: "conversations moved so far are at the new place, each of them whole",
    next: again,
    endsItself: true,
  },
  pins: { doing: "searching", kept: "what was pinned so far stays pinned", next: again },
  prune: {
    doing: "selecting",
    kept: "the conversations are all there, or all archived and deleted",
    next: "see `lcm conversations`, and run it again if they are there",
  },
  repair: { doing: "checking", kept: "texts applied so far are kept", next: again, endsItself: true },
  restore: {
    doing: "restoring",
    kept: "the database is the old one or the restored one, whole",
    next: "run it again; `lcm restore` lists what was set aside",
  },
  rewrite: { doing: "planning", kept: "texts applied so far are kept", next: again, endsItself: true },
  seen: { doing: "reading", kept: unchanged, next: "run it again, and look for a message by its id instead of words" },
  transplant: { doing: "copying", kept: allOrNothing, next: "see `lcm history`, and run it again if it is not there" },
  undo: { doing: "undoing", kept: allOrNothing, next: "see `lcm history`, and run it again if it is not there" },
} as const satisfies Readonly<Record<string, LongCommand>>;

/** Their work does not grow with what is stored, or they run until a person or a client ends them. */
export const shortCommands = [
  "completion",
  "context",
  "conversations",
  "dag",
  "demo",
  "describe",
  "expand",
  "history",
  "mcp",
  "messages",
  "prompts",
  "proxy",
  "recent",
  "run",
  "serve",
  "settings",
  "setup",
  "stats",
  "status",
  "tui",
  "web",
] as const;

export const longCommand = (name: string): LongCommand | null =>
  Object.entries<LongCommand>(longCommands).find(([each]) => each === name)?.[1] ?? null;
