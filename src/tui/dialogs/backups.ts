/** The dialog that picks a backup to restore. */

import { formatBytes, plural } from "../../core/base/format.ts";
import { formatWords, isSound, type Restorable } from "../../format/restore.ts";
import type { Frame, Module, Step } from "../contract.ts";
import { listTable } from "../widgets/draw.ts";
import { createRows, seen, startOfList, type List } from "../widgets/list.ts";

export interface BackupsDialog {
  readonly kind: "backups";
  /** Newest first; null until they are listed. */
  readonly found: readonly Restorable[] | null;
  readonly list: List;
}

const columnsMax = 90;
/** The question, a blank line and the table's heading. */
const headRows = 3;

const rows = createRows<BackupsDialog>({
  count: ({ found }) => found?.length ?? 0,
  place: (_, frame) => ({ above: headRows, rows: frame.rows - headRows }),
  open: pick,
});

const whyNot = ({ found, list }: BackupsDialog): string | null => {
  const copy = found?.[list.cursor];
  if (copy === undefined) return "no backup is selected";
  return isSound(copy) || copy.missingFiles > 0 ? null : `this file is ${formatWords[copy.format]}`;
};

export const backupsModule: Module<BackupsDialog> = {
  name: "Backups",
  open: ({ kind }) => ({ kind, found: null, list: startOfList }),
  box: ({ found }, { columns }) => ({
    columns: Math.min(columnsMax, columns - 4),
    rows: headRows + Math.max(1, found?.length ?? 1),
  }),
  keys: [
    {
      keys: ["enter"],
      short: "restore",
      help: "show what restoring it replaces",
      changes: true,
      disabled: whyNot,
      does: pick,
    },
    ...rows.keys,
  ],
  title: () => "restore a backup",
  isBusy: ({ found }) => found === null,
  reads: () => [{ kind: "restorable" }],
  answers: {
    restorable: (state, found, frame) => ({
      state: { ...state, found, list: seen(state.list, found.length, frame.rows - headRows) },
    }),
  },
  on: rows.on,
  draw,
};

function pick(state: BackupsDialog): Step<BackupsDialog> {
  const { found, list } = state;
  const copy = found?.[list.cursor];
  if (copy === undefined || whyNot(state) !== null) return { state };
  return { state, go: { kind: "become", place: { kind: "restore", from: copy.path } } };
}

function draw({ found, list }: BackupsDialog, frame: Frame): readonly string[] {
  const { paint } = frame;
  const head = [`Restore which backup? ${paint.soft("the plan is shown first")}`, ""];
  if (found === null) return [...head, "  reading …"];
  if (found.length === 0) return [...head, "  there are no backups next to the database"];
  return [
    ...head,
    ...listTable(
      { ...list, items: found },
      [
        { title: "backup", flexible: true },
        { title: "what", spare: true },
        { title: "size", align: "right" },
        { title: "format", spare: true },
      ],
      ({ path, kind, bytes, format, missingFiles }) => [
        path.replace(/^.*[/\\]/s, ""),
        kind === "backup" ? "backup" : "set aside",
        formatBytes(bytes),
        missingFiles > 0 ? `${plural(missingFiles, "file")} missing` : formatWords[format],
      ],
      { ...frame, rows: frame.rows - headRows },
    ),
  ];
}
