/** Draws texts: Markdown, code, and the blocks of messages. All stored text becomes text nodes. */

import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { formatCount } from "../../../core/base/format.ts";
import type { Json } from "../../../core/base/json.ts";
import type { Block } from "../../contract.ts";
import { soughtIn } from "../parts/found.ts";
import { Button, IdLink, Linked, Table } from "../parts/ui.tsx";
import { useAround } from "../session.ts";
import { highlight } from "./highlight.ts";
import { parseMarkdown, type Inline, type Node } from "./markdown.ts";
import { gridOf } from "./tables.ts";

/** Longer texts are cut, with a button for the rest: a page of them would not be read anyway. */
const charactersShown = 12_000;

export function Markdown({ text }: { readonly text: string }) {
  const { shown, rest } = useBeginning(text);
  const nodes = useMemo(() => parseMarkdown(shown), [shown]);
  return (
    <div class="markdown" dir="auto">
      <Nodes nodes={nodes} />
      {rest}
    </div>
  );
}

/** All of it at once if what is sought is in the rest. */
function useBeginning(text: string) {
  const { place } = useAround();
  const [isWhole, setWhole] = useState(() => soughtIn(place).some((word) => text.includes(word, charactersShown)));
  if (isWhole || text.length <= charactersShown) return { shown: text, rest: null };
  const rest = (
    <Button onClick={() => setWhole(true)}>Show {formatCount(text.length - charactersShown)} more characters</Button>
  );
  return { shown: text.slice(0, charactersShown), rest };
}

const Nodes = ({ nodes }: { readonly nodes: readonly Node[] }) => (
  <>
    {nodes.map((node, at) => (
      <NodeView key={at} node={node} />
    ))}
  </>
);

function NodeView({ node }: { readonly node: Node }) {
  switch (node.kind) {
    case "paragraph":
      return (
        <p>
          <Inlines nodes={node.inside} />
        </p>
      );
    case "heading":
      // Headings of a text are not headings of the page.
      return (
        <p class={`heading heading-${node.level}`}>
          <Inlines nodes={node.inside} />
        </p>
      );
    case "code":
      return <Code text={node.text} language={node.language} />;
    case "quote":
      return (
        <blockquote>
          <Nodes nodes={node.inside} />
        </blockquote>
      );
    case "rule":
      return <hr />;
    case "list": {
      const items = node.items.map((item, at) => <li key={at}>{tight(item) ?? <Nodes nodes={item} />}</li>);
      return node.start === null ? <ul>{items}</ul> : <ol start={node.start}>{items}</ol>;
    }
    case "table":
      return (
        <Table
          label="table"
          columns={node.head.map((cell, at) =>
            node.rows.every((row) => isAmount.test(plainOf(row[at] ?? []))) ? (
              `${plainOf(cell)} #`
            ) : (
              <Inlines key={at} nodes={cell} />
            ),
          )}
          rows={node.rows.map((row, number) => [number, ...row.map((cell, at) => <Inlines key={at} nodes={cell} />)])}
        />
      );
  }
}

const plainOf = (nodes: readonly Inline[]): string =>
  nodes.map((node) => ("inside" in node ? plainOf(node.inside) : "text" in node ? node.text : "")).join("");

const tight = ([only, ...more]: readonly Node[]): ComponentChildren =>
  more.length === 0 && only?.kind === "paragraph" ? <Inlines nodes={only.inside} /> : null;

const Inlines = ({ nodes }: { readonly nodes: readonly Inline[] }) => (
  <>
    {nodes.map((node, at) => (
      <InlineView key={at} node={node} />
    ))}
  </>
);

function InlineView({ node }: { readonly node: Inline }) {
  switch (node.kind) {
    case "text":
      return <Linked text={node.text} />;
    case "code":
      return /^(?:msg_\d+-\d+|sum_[0-9a-f]{16}|file_[0-9a-f]{16})$/.test(node.text) ? (
        <IdLink id={node.text} />
      ) : (
        <code>{node.text}</code>
      );
    case "strong":
      return (
        <strong>
          <Inlines nodes={node.inside} />
        </strong>
      );
    case "em":
      return (
        <em>
          <Inlines nodes={node.inside} />
        </em>
      );
    case "strike":
      return (
        <s>
          <Inlines nodes={node.inside} />
        </s>
      );
    case "link":
      return (
        <a href={node.to} target="_blank" rel="noopener noreferrer nofollow" referrerpolicy="no-referrer">
          <Inlines nodes={node.inside} />
        </a>
      );
    case "break":
      return <br />;
  }
}

export function Code({ text, language }: { readonly text: string; readonly language: string }) {
  const { shown, rest } = useBeginning(text);
  const pieces = useMemo(() => highlight(shown, language), [shown, language]);
  return (
    <div class="code">
      <pre tabIndex={0} role="region" aria-label={language === "" ? "text" : `code, ${language}`}>
        <code>
          {pieces.map(({ shade, text: piece }, at) =>
            shade === "plain" ? (
              piece
            ) : (
              <span key={at} class={`code-${shade}`}>
                {piece}
              </span>
            ),
          )}
        </code>
      </pre>
      {rest}
    </div>
  );
}

// ── Blocks of messages ───────────────────────────────────────────────────────────────────────────────────────────────

export const Blocks = ({ blocks }: { readonly blocks: readonly Block[] }) => (
  <>
    {blocks.length === 0 && <p class="soft">Without content.</p>}
    {blocks.map((block, at) => (
      <BlockView key={at} block={block} beside={wordsIn(blocks)} />
    ))}
  </>
);

/** What a picture is about is most likely said beside it. */
const wordsIn = (blocks: readonly Block[]): string =>
  opening(blocks.flatMap((block) => (block.kind === "text" ? [block.text] : []))[0] ?? "");

function BlockView({ block, beside }: { readonly block: Block; readonly beside: string }) {
  switch (block.kind) {
    case "text":
      return <Markdown text={block.text} />;
    case "reasoning":
      return (
        <details class="block">
          <summary>
            Reasoning <span class="soft">{opening(block.text)}</span>
          </summary>
          <Markdown text={block.text} />
        </details>
      );
    case "reminder":
      return (
        <details class="block">
          <summary>
            Reminder of the host <span class="soft">{opening(withoutTag(block.text))}</span>
          </summary>
          <Markdown text={block.text} />
        </details>
      );
    case "call":
      return <CallView name={block.name} input={block.input} />;
    case "result":
      return (
        <details class={block.isFailed ? "block failed" : "block"} open={block.text.length < 600}>
          <summary>
            <span aria-hidden="true">←</span> result{block.name === null ? "" : " of "}
            {block.name !== null && <strong>{block.name}</strong>}{" "}
            {block.isFailed && <span class="badge bad">failed</span>} <span class="soft">{opening(block.text)}</span>
          </summary>
          <ResultView text={block.text} />
        </details>
      );
    case "picture":
      return <Picture address={block.address} mimeType={block.mimeType} beside={beside} />;
    case "file":
      return (
        <p class="block">
          Moved to <IdLink id={block.file} />: <span class="soft">{opening(block.text)}</span>
        </p>
      );
    case "other":
      return (
        <details class="block">
          <summary>{block.type === "" ? "other" : block.type}</summary>
          <Code text={JSON.stringify(block.json, null, 2)} language="json" />
        </details>
      );
  }
}

const withoutTag = (text: string): string => text.replace(/^\s*<[\w-]+>/, "");

const opening = (text: string): string =>
  text.slice(0, 120).replace(/\s+/g, " ").trim() + (text.length > 120 ? "…" : "");

/** Folded, with its arguments in short; a command is shown as such. */
function CallView({ name, input }: { readonly name: string; readonly input: Json }) {
  const fields = typeof input === "object" && input !== null && !Array.isArray(input) ? Object.entries(input) : [];
  const isPlain = fields.length > 0 && fields.every(([, value]) => typeof value !== "object" || value === null);
  return (
    <details class="block">
      <summary>
        <span aria-hidden="true">→</span> <strong>{name === "" ? "call" : name}</strong>{" "}
        <code class="soft">
          {opening(
            typeof input === "string" ? input : fields.length === 1 ? plain(fields[0]?.[1]) : JSON.stringify(input),
          )}
        </code>
      </summary>
      {isPlain ? (
        <dl class="arguments">
          {fields.map(([field, value]) => (
            <>
              <dt>{field}</dt>
              <dd>
                {typeof value === "string" &&
                (value.includes("\n") || /^(?:command|cmd|code|script|patch)$/.test(field)) ? (
                  <Code text={value} language="sh" />
                ) : (
                  <Linked text={plain(value)} />
                )}
              </dd>
            </>
          ))}
        </dl>
      ) : (
        <Code text={typeof input === "string" ? input : JSON.stringify(input, null, 2)} language="json" />
      )}
    </details>
  );
}

const plain = (value: Json | undefined): string => (typeof value === "string" ? value : JSON.stringify(value ?? null));

/** Numbers, with signs, units of money and percent, as columns of tables have them; or nothing. */
const isAmount = /^\s*(?:[-+−]?[£$€]?\s?\d[\d,.' ]*\s?[%€kM]?|[-–]?)\s*$/;

function ResultView({ text }: { readonly text: string }) {
  const grid = useMemo(() => gridOf(text), [text]);
  if (grid !== null)
    return (
      <Table
        label="table"
        columns={grid.head.map((cell, at) =>
          grid.rows.every((row) => isAmount.test(row[at] ?? "")) ? `${cell} #` : <>{cell}</>,
        )}
        rows={grid.rows.map((row, at) => [at, ...row])}
      />
    );
  return <Code text={text} language={/^\s*[[{]/.test(text) ? "json" : "text"} />;
}

/** Only pictures of kinds that cannot contain anything else; others can be opened as text. */
interface PictureProps {
  readonly address: string;
  readonly mimeType: string;
  readonly beside: string;
}

function Picture({ address, mimeType, beside }: PictureProps) {
  if (!/^image\/(?:png|jpeg|gif|webp|avif|bmp)$/.test(mimeType))
    return <p class="block soft">A picture that is not shown ({mimeType}).</p>;
  return (
    <img
      class="picture"
      src={address}
      alt={beside === "" ? `picture, ${mimeType}` : `picture beside the words: ${beside}`}
      loading="lazy"
    />
  );
}
