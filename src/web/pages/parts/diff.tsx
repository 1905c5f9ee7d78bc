/** Two texts side by side: what is in the old one only, in the new one only, and in both. */

import { diffLines } from "diff";
import type { DiffLine } from "../../contract.ts";

interface Row {
  readonly old: string | null;
  readonly new: string | null;
  readonly isSame: boolean;
}

/** Lines that were replaced stand beside their replacements. */
export function rowsOf(lines: readonly DiffLine[]): readonly Row[] {
  const rows: Row[] = [];
  let old: string[] = [];
  let added: string[] = [];
  const flush = (): void => {
    for (let at = 0; at < Math.max(old.length, added.length); at++)
      rows.push({ old: old[at] ?? null, new: added[at] ?? null, isSame: false });
    [old, added] = [[], []];
  };
  for (const { kind, text } of lines) {
    if (kind === "old") old.push(text);
    else if (kind === "new") added.push(text);
    else {
      flush();
      rows.push({ old: text, new: text, isSame: true });
    }
  }
  flush();
  return rows;
}

interface Props {
  readonly lines: readonly DiffLine[];
  readonly oldTitle: string;
  readonly newTitle: string;
}

export const SideBySide = ({ lines, oldTitle, newTitle }: Props) => (
  <div class="scroll diff" tabIndex={0} role="region" aria-label="the old text beside the new one">
    <table>
      <thead>
        <tr>
          <th scope="col">{oldTitle}</th>
          <th scope="col">{newTitle}</th>
        </tr>
      </thead>
      <tbody>
        {rowsOf(lines).map((row, at) => (
          <tr key={at}>
            <td class={row.isSame || row.old === null ? "" : "old"}>
              {!row.isSame && row.old !== null && <span class="visually-hidden">removed: </span>}
              {row.old}
            </td>
            <td class={row.isSame ? "again" : row.new === null ? "" : "new"}>
              {!row.isSame && row.new !== null && <span class="visually-hidden">added: </span>}
              {row.new}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);

/** The same of two whole texts. */
export const diffOf = (before: string, after: string): readonly DiffLine[] =>
  diffLines(before, after).flatMap(({ value, added, removed }) =>
    value
      .replace(/\n$/, "")
      .split("\n")
      .map((text) => ({ kind: added ? "new" : removed ? "old" : "same", text }) as const),
  );
