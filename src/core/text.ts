/** Provisional; the real one is being fitted and will replace this file whole. */
import type { Timestamp } from "./model.ts";
export const estimateTokens = (text: string): number => Math.ceil(text.length / 3.8);
export function parseTimestamp(input: string | number): Timestamp | null {
  if (typeof input === "number") return new Date(input < 1e11 ? input * 1000 : input).toISOString() as Timestamp;
  const m = /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,3}))?)?)?(Z|[+-]\d{2}:?\d{2})?$/.exec(input);
  if (!m) return null;
  const d = new Date(input.includes(" ") ? input.replace(" ", "T") + (m[8] ? "" : "Z") : m[4] && !m[8] ? input + "Z" : input);
  return Number.isNaN(d.getTime()) ? null : (d.toISOString() as Timestamp);
}
export const timestampToMs = (t: Timestamp): number => Date.parse(t);
export const formatTimestamp = (t: Timestamp, zone = "UTC"): string => `${t.slice(0, 16).replace("T", " ")} ${zone}`;
export const formatRange = (a: Timestamp, b: Timestamp, zone = "UTC"): string => `${formatTimestamp(a, zone)} – ${formatTimestamp(b, zone)}`;
export const excerpt = (text: string, match: { from: number; to: number }, width: number): string =>
  text.slice(Math.max(0, match.from - (width >> 1)), match.from + (width >> 1)).replace(/\s+/g, " ");
export const firstLine = (text: string, width: number): string => (text.split("\n")[0] ?? "").slice(0, width);
export const formatCount = (n: number): string => String(n).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
export const formatBytes = (n: number): string => `${(n / 1e6).toFixed(1)} MB`;
