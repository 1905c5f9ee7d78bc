/** Formats counts, lists, sizes and paths for people, and compares strings. */

/** Sort order of strings; for timestamps, the order in time. */
export const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** `1,234`. */
export function formatCount(count: number): string {
  return Math.round(count)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ",");
}

/** `1 message`, `1,234 messages`. */
export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${formatCount(count)} ${count === 1 ? one : many}`;

/** `one`, `one and two`, `one, two and three`. */
export const listed = (items: readonly string[]): string =>
  items.length < 2 ? items.join("") : `${items.slice(0, -1).join(", ")} and ${items.at(-1)}`;

/** Quotes a path for a shell; on Windows all shells accept double quotes, with plain backslashes. */
export function shellPath(path: string): string {
  if (/^[\w@%+=:,./~-]+$/.test(path)) return path;
  return /^[A-Za-z]:\\[^"$`%]*$/.test(path) ? `"${path}"` : `'${path.replaceAll("'", String.raw`'\''`)}'`;
}

/** `~/.codex/config.toml`: a path as a person writes it. */
export const withTilde = (path: string, home: string): string =>
  home !== "" && /^[/\\]/.test(path.slice(home.length)) && path.startsWith(home) ? `~${path.slice(home.length)}` : path;

/** `532 B`, `1.2 MB`: powers of a thousand, two or three figures. */
export function formatBytes(bytes: number): string {
  const units = ["KB", "MB", "GB", "TB"] as const;
  let shown = `${bytes} B`;
  let amount = bytes;
  for (const unit of units) {
    if (Number(amount.toFixed(0)) < 1000) break;
    amount /= 1000;
    shown = `${amount.toFixed(amount < 99.95 ? 1 : 0)} ${unit}`;
  }
  return shown;
}
