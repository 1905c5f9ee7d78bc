/** Plots of our own, as SVG: each has a name, a scale, a title per bar, and the same numbers as a table. */

import type { ComponentChildren } from "preact";
import { plural } from "../../../core/base/format.ts";
import { msToTimestamp } from "../../../core/base/time.ts";
import { go } from "../router.ts";
import { clock } from "../words.ts";
import { Table } from "./ui.tsx";

export interface Bar {
  /** For the title and the table. */
  readonly label: string;
  /** Null where it is not known. */
  readonly value: number | null;
  readonly mark?: boolean;
  readonly href?: string | undefined;
}

interface PlotProps {
  readonly title: string;
  readonly bars: readonly Bar[];
  readonly format: (value: number) => string;
  /** The top of the scale, unless a value is higher. */
  readonly most?: number;
  /** What a mark below a bar means. */
  readonly marked?: string;
  readonly children?: ComponentChildren;
}

const [width, height, gap] = [720, 120, 0.2];
/** A few bars stay slim. */
const barMax = 24;

export function BarPlot({ title, bars, format, most = 0, marked, children }: PlotProps) {
  const top = Math.max(most, ...bars.map(({ value }) => value ?? 0)) || 1;
  const step = width / Math.max(1, bars.length);
  const wide = Math.min(barMax, step * (1 - gap));
  return (
    <figure class="plot">
      <figcaption>
        <h3>{title}</h3>
        {children}
      </figcaption>
      <svg
        viewBox={`0 0 ${width} ${height + 12}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${title}: a plot. Its numbers are in the table that follows.`}
      >
        <line class="grid" x1="0" x2={width} y1="0.5" y2="0.5" />
        <line class="grid" x1="0" x2={width} y1={height / 2} y2={height / 2} />
        <line class="base" x1="0" x2={width} y1={height} y2={height} />
        {bars.map(({ label, value, mark, href }, at) => {
          const tall = value === null ? 0 : Math.max(value > 0 ? 1 : 0, (value / top) * height);
          const left = at * step;
          return (
            <g key={at} class={href === undefined ? "" : "leads"} onClick={() => href !== undefined && go(href)}>
              <title>{`${label}: ${value === null ? "unknown" : format(value)}${href === undefined ? "" : " (click to open the prompt)"}`}</title>
              <rect class="hover" x={left} y="0" width={step} height={height} />
              <rect class="bar" x={left + (step - wide) / 2} y={height - tall} width={wide} height={tall} />
              {mark === true && <rect class="mark" x={left + step / 2 - 1} y={height + 3} width="2" height="8" />}
            </g>
          );
        })}
      </svg>
      <div class="plot-scale" aria-hidden="true">
        <span>{bars[0]?.label}</span>
        <span>top: {format(top)}</span>
        <span>{bars.at(-1)?.label}</span>
      </div>
      <PlotTable title={title} bars={bars} format={format} {...(marked === undefined ? {} : { marked })} />
    </figure>
  );
}

const PlotTable = ({ title, bars, format, marked }: PlotProps) => (
  <details>
    <summary>Numbers</summary>
    <Table
      label={`${title}, numbers`}
      columns={["when", `${title.toLowerCase()} #`, ...(marked === undefined ? [] : ["note"])]}
      rows={bars.map(({ label, value, mark, href }, at) => [
        at,
        href === undefined ? label : <a href={href}>{label}</a>,
        value === null ? "–" : format(value),
        ...(marked === undefined ? [] : [mark === true && marked]),
      ])}
    />
  </details>
);

/** Activity over time: how many messages fall into each part of it. */
export function Sparkline({ counts, label }: { readonly counts: readonly number[]; readonly label: string }) {
  const most = Math.max(1, ...counts);
  return (
    <svg
      class="sparkline"
      viewBox={`0 0 ${counts.length * 4} 24`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <title>{label}</title>
      {counts.map((count, at) => {
        const tall = count === 0 ? 0.75 : Math.max(2, 24 * Math.sqrt(count / most));
        return <rect key={at} class={count === 0 ? "none" : ""} x={at * 4} y={24 - tall} width="3" height={tall} />;
      })}
    </svg>
  );
}

/** Spreads numbered points in time over cells of the same length. */
export function activityCounts(pace: readonly (readonly [number, number])[], cells: number): readonly number[] {
  const [start, end] = [pace[0]?.[1] ?? 0, pace.at(-1)?.[1] ?? 0];
  const counts = Array.from({ length: cells }, () => 0);
  const cellAt = (ms: number): number =>
    Math.max(0, Math.min(cells - 1, Math.floor(((ms - start) / Math.max(1, end - start)) * cells)));
  for (const [at, [seq, ms]] of pace.entries()) {
    const before = pace[at - 1];
    const count = before === undefined ? 1 : seq - before[0];
    const [from, to] = [cellAt(before?.[1] ?? ms), cellAt(ms)];
    // Messages between two points are somewhere between them, most likely at both ends of a pause.
    const ends = from === to ? [to] : [from, to];
    for (const cell of ends) counts[cell] = (counts[cell] ?? 0) + count / ends.length;
  }
  return counts;
}

/** The day with most messages; approximate where not each of them has a point. */
export function busiestDay(pace: readonly (readonly [number, number])[]): string {
  const days = new Map<string, number>();
  const dayOf = (ms: number): string => clock(msToTimestamp(ms)).slice(0, "2026-02-17".length);
  for (const [at, [seq, ms]] of pace.entries()) {
    const before = pace[at - 1];
    const count = before === undefined ? 1 : seq - before[0];
    const ends = [...new Set([dayOf(count > 1 ? (before?.[1] ?? ms) : ms), dayOf(ms)])];
    for (const day of ends) days.set(day, (days.get(day) ?? 0) + count / ends.length);
  }
  const [day, most] = [...days].reduce((best, each) => (each[1] > best[1] ? each : best), ["", 0]);
  const isExact = (pace.at(-1)?.[0] ?? 0) - (pace[0]?.[0] ?? 0) < pace.length;
  return day === ""
    ? "none yet"
    : `busiest day ${day}, ${isExact ? "" : "about "}${plural(Math.round(most), "message")}`;
}

/** An amount beside its number, as a share of the largest. */
export const Amount = ({ share }: { readonly share: number }) => (
  <span class="amount" aria-hidden="true">
    <span style={{ width: `${Math.max(1, 100 * Math.min(1, share))}%` }} />
  </span>
);

export interface Share {
  readonly name: string;
  readonly tokens: number;
  readonly items: number | null;
  /** A class with its colour and pattern. */
  readonly look: string;
}

interface SharesProps {
  readonly shares: readonly Share[];
  readonly label: string;
  readonly format: (tokens: number) => string;
}

/** What something is made of, as a bar with a legend. Parts differ by pattern as well as by colour. */
export function ShareBar({ shares, label, format }: SharesProps) {
  const total = Math.max(
    1,
    shares.reduce((sum, { tokens }) => sum + tokens, 0),
  );
  const words = shares.map(({ name, tokens }) => `${name} ${format(tokens)}`).join(", ");
  return (
    <div class="shares">
      <div class="share-bar" role="img" aria-label={`${label}: ${words}`}>
        {shares.map(({ name, tokens, look }) => (
          <span
            key={name}
            class={look}
            style={{ flexGrow: Math.max(tokens / total, 0.002) * 1_000 }}
            title={`${name}: ${format(tokens)}`}
          />
        ))}
      </div>
      <ul class="legend">
        {shares.map(({ name, tokens, items, look }) => (
          <li key={name}>
            <span class={`swatch ${look}`} aria-hidden="true" /> {name} <strong>{format(tokens)}</strong>
            {items !== null && <span class="soft"> ({items})</span>}
          </li>
        ))}
      </ul>
    </div>
  );
}
