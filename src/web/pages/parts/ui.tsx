/** Small parts of every view: links to ids, times, badges, dialogs, and what is shown while there is nothing to show. */

import type { ComponentChildren, ComponentProps, TargetedEvent } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { MessageId } from "../../../core/model/types.ts";
import type { Timestamp } from "../../../core/base/time.ts";
import type { Failure, NodeState } from "../../contract.ts";
import type { Asked } from "../api.ts";
import { typesText } from "../keys.ts";
import { addressOfId, ago, clock, nameOfId, splitIds, stateWords } from "../words.ts";

export function IdLink({ id, children }: { readonly id: string | MessageId; readonly children?: ComponentChildren }) {
  const address = addressOfId(id);
  if (address === null) return <code>{children ?? nameOfId(id)}</code>;
  return (
    <a class={children === undefined ? "id" : ""} href={address}>
      {children ?? nameOfId(id)}
    </a>
  );
}

/** A text in which every id is a link. */
export function Linked({ text }: { readonly text: string }) {
  const pieces = splitIds(text);
  if (pieces.length === 1) return <>{text}</>;
  return <>{pieces.map((piece, at) => (at % 2 === 1 ? <IdLink key={at} id={piece} /> : piece))}</>;
}

/** Of the page, never of a form. */
export const Button = (props: ComponentProps<"button">) => <button type="button" {...props} />;

export const When = ({ at }: { readonly at: Timestamp }) => (
  <time dateTime={at} title={at}>
    {clock(at)}
  </time>
);

export const Ago = ({ at, now }: { readonly at: Timestamp; readonly now: number }) => (
  <time dateTime={at} title={clock(at)}>
    {ago(at, now)}
  </time>
);

export const StateBadge = ({ state }: { readonly state: NodeState }) => (
  <span class="badge">
    <span class={`swatch state-${state}`} aria-hidden="true" /> {stateWords[state]}
  </span>
);

export const Loading = ({ what }: { readonly what: string }) => (
  <div class="loading" role="status">
    <span class="spinner" aria-hidden="true" /> Reading {what} …
  </div>
);

export const Empty = ({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) => (
  <div class="empty">
    <p class="empty-title">{title}</p>
    {children}
  </div>
);

const isNumber = (column: ComponentChildren): boolean => typeof column === "string" && column.endsWith(" #");

interface HeadProps {
  /** Names of columns of numbers end with ` #`. */
  readonly columns: readonly ComponentChildren[];
  readonly isHidden?: boolean;
}

export const Head = ({ columns, isHidden = false }: HeadProps) => (
  <thead class={isHidden ? "visually-hidden" : ""}>
    <tr>
      {columns.map((name, at) => (
        <th key={at} scope="col" class={isNumber(name) ? "number" : ""}>
          {typeof name === "string" ? name.replace(/ #$/, "") : name}
        </th>
      ))}
    </tr>
  </thead>
);

interface TableProps {
  readonly label: string;
  /** As `Head` has them; elements are never numbers. */
  readonly columns: readonly ComponentChildren[];
  readonly rows: readonly (readonly [key: string | number, ...cells: ComponentChildren[]])[];
  /** On a phone each row is a block. */
  readonly isStacked?: boolean;
}

/** A table that scrolls by itself where it is too wide. */
export const Table = ({ label, columns, rows, isStacked = false }: TableProps) => (
  <div class="scroll" tabIndex={0} role="region" aria-label={label}>
    <table class={isStacked ? "stacked" : ""}>
      <Head columns={columns} />
      <tbody>
        {rows.map(([key, ...cells]) => (
          <tr key={key}>
            {cells.map((cell, at) => (
              <td key={at} class={isNumber(columns[at]) ? "number" : ""}>
                {cell}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);

export const Figures = ({ figures }: { readonly figures: readonly (readonly [name: string, value: string])[] }) => (
  <dl class="figures">
    {figures.map(([name, value]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
);

interface FailureProps {
  readonly failure: Failure;
  readonly again?: (() => void) | undefined;
}

export const FailureNote = ({ failure: { message, hint }, again }: FailureProps) => (
  <div class="failure" role="alert">
    <p>
      <strong>{sentence(message)}</strong>
    </p>
    {hint !== null && <p>{sentence(hint)}</p>}
    {again !== undefined && <Button onClick={again}>Try again</Button>}
  </div>
);

/** As the errors of the command line, but with an end, and a capital letter unless an id begins it. */
export function sentence(words: string): string {
  if (words === "") return "";
  const first = splitIds(words)[0] === "" ? words.charAt(0) : words.charAt(0).toUpperCase();
  return first + words.slice(1) + (/[.!?…:]$/.test(words) ? "" : ".");
}

/** A sentence about what is shown; commands in it are code. */
export const Note = ({ words, children }: { readonly words: string; readonly children?: ComponentChildren }) => (
  <p class="note">
    {sentence(words)
      .split("`")
      .map((piece, at) => (at % 2 === 1 ? <code key={at}>{piece}</code> : piece))}
    {children}
  </p>
);

interface ShownProps<T> {
  readonly asked: Asked<T>;
  readonly what: string;
  readonly children: (value: T) => ComponentChildren;
}

/** What was read, or why it is not there yet. */
export function Shown<T>({ asked: { value, failure, again }, what, children }: ShownProps<T>) {
  return (
    <>
      {failure !== null && <FailureNote failure={failure} again={again} />}
      {value !== null ? children(value) : failure === null && <Loading what={what} />}
    </>
  );
}

let isArriving = true;
/** The next heading that appears gets the focus: a view begins there for a screen reader, too. */
export const arrive = (): void => {
  isArriving = true;
};

/** Of a view. It names the page, too. */
export function Heading({ children, title }: { readonly children: ComponentChildren; readonly title: string }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · lossless-claw`;
  }, [title]);
  useLayoutEffect(() => {
    // What comes late must not take the focus from a field in which somebody types.
    const isTyping = document.activeElement?.matches(typesText) === true;
    if (isArriving && !isTyping) heading.current?.focus({ preventScroll: true });
    isArriving = false;
  }, []);
  return (
    <h1 ref={heading} tabIndex={-1}>
      {children}
    </h1>
  );
}

interface ChoiceProps<T extends string> {
  readonly label: string;
  readonly options: readonly (readonly [T, string])[];
  readonly value: T;
  readonly onChange: (value: T) => void;
}

/** A few choices, of which one holds. */
export const Choice = <T extends string>({ label, options, value, onChange }: ChoiceProps<T>) => (
  <div class="choice" role="group" aria-label={label}>
    {options.map(([option, words]) => (
      <Button key={option} aria-pressed={option === value} onClick={() => onChange(option)}>
        {words}
      </Button>
    ))}
  </div>
);

interface SelectProps {
  readonly label: string;
  readonly options: readonly (readonly [string, string])[];
  readonly value: string;
  readonly onChange: (value: string) => void;
}

export const Select = ({ label, options, value, onChange }: SelectProps) => (
  <label class="field">
    <span>{label}</span>
    <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
      {options.map(([option, words]) => (
        <option key={option} value={option} selected={option === value}>
          {words}
        </option>
      ))}
    </select>
  </label>
);

interface FieldProps {
  readonly label: string;
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly type?: "search" | "date" | "number";
  readonly id?: string;
  /** How wide: as wide as there is room, or short. */
  readonly size?: "grow" | "short";
}

export function Field({ label, value, onInput, type = "search", id, size }: FieldProps) {
  const rest = {
    value,
    onInput: (event: Typed) => onInput(event.currentTarget.value),
    ...(id === undefined ? {} : { id }),
  };
  return (
    <label class={size === undefined ? "field" : `field ${size}`}>
      <span>{label}</span>
      {type === "search" ? (
        <input type="search" {...rest} />
      ) : type === "date" ? (
        <input type="date" {...rest} />
      ) : (
        <input type="number" min="1" {...rest} />
      )}
    </label>
  );
}

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  readonly wide?: boolean;
}

/** A dialog of the browser's own: it keeps the focus inside, and escape closes it. */
export function Dialog({ title, onClose, children, wide = false }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog ref={dialog} tabIndex={-1} class={wide ? "wide" : ""} aria-labelledby="dialog-title" onClose={onClose}>
      <header class="dialog-head">
        <h2 id="dialog-title">{title}</h2>
        <Button class="quiet" aria-label="Close" onClick={onClose}>
          ✕
        </Button>
      </header>
      {children}
    </dialog>
  );
}

/** What a dialog can do, always in view. When a step takes the focused button away, what comes next gets the focus. */
export function Actions({ children }: { readonly children: ComponentChildren }) {
  const row = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const { activeElement: focused } = document;
    if (focused?.matches("body, dialog, :disabled") === false) return;
    const next = row.current?.querySelector<HTMLElement>(".primary:not(:disabled)");
    (next ?? document.querySelector<HTMLElement>("dialog[open]"))?.focus();
  });
  return (
    <div ref={row} class="actions">
      {children}
    </div>
  );
}

/** A value that follows another once it has been still for a while. */
export function useStill<T>(value: T, ms: number): T {
  const [still, setStill] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setStill(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return still;
}

export type Typed = TargetedEvent<HTMLInputElement>;
