/** What `lcm web` asks of its context, beside what the terminal UI does. */

export interface Exploring {
  /** Null for a free port. */
  readonly listenOn: number | null;
  /** Whether the link is opened in a browser, if there is one. */
  readonly opens: boolean;
  /** Called once, when the link can be opened. */
  readonly started: (served: { readonly link: string; readonly port: number }) => void;
  /** Reports what the person at the terminal should know. */
  readonly note: (line: string) => void;
}
