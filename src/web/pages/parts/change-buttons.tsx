/** Buttons that begin a change. On a read-only server the plan can be seen, but not applied. */

import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { ConversationId, SummaryId } from "../../../core/model/types.ts";
import type { ChangeRequest, MessageReading, RewriteSelection } from "../../contract.ts";
import { useKeys } from "../keys.ts";
import { PlanDialog, undoWords } from "./plan-dialog.tsx";
import { RewriteDialog } from "./rewrite-dialog.tsx";
import { Button } from "./ui.tsx";

interface OpeningProps {
  readonly words: string;
  /** What a screen reader says, where the words alone do not say what is meant. */
  readonly label?: string;
  readonly onClosed?: () => void;
}

function Opening({
  words,
  label,
  onClosed,
  children,
}: OpeningProps & { readonly children: (close: () => void) => VNode }) {
  const [isOpen, setOpen] = useState(false);
  const close = (): void => {
    setOpen(false);
    onClosed?.();
  };
  return (
    <>
      <Button aria-label={label} onClick={() => setOpen(true)}>
        {words}
      </Button>
      {isOpen && children(close)}
    </>
  );
}

/** In its dialog, the button that does it has the same words. */
export const ChangeButton = ({ request, ...words }: OpeningProps & { readonly request: ChangeRequest }) => (
  <Opening {...words}>
    {(close) => (
      <PlanDialog
        request={request}
        act={request.kind === "undo" ? undoWords : words.words.replace(/ …$/, "")}
        onClose={close}
      />
    )}
  </Opening>
);

interface RewriteProps extends OpeningProps {
  readonly conversation: ConversationId;
  readonly select: RewriteSelection;
}

export const RewriteButton = ({ conversation, select, ...words }: RewriteProps) => (
  <Opening {...words}>
    {(close) => <RewriteDialog conversation={conversation} select={select} onClose={close} />}
  </Opening>
);

export function PinButton({ message: { id, role, pin } }: { readonly message: MessageReading }) {
  if (role !== "user") return null;
  const isPinned = pin?.state === "pinned";
  return (
    <>
      {isPinned && (
        <blockquote class="pin">
          <p>Stays in every prompt: {pin.words}</p>
          <p class="soft small">{pin.reason}</p>
        </blockquote>
      )}
      <ChangeButton
        request={{ kind: "pin", message: id }}
        words={isPinned ? "Unpin …" : "Pin: keep it in every prompt …"}
      />
    </>
  );
}

interface SummaryProps {
  readonly conversation: ConversationId;
  readonly summary: SummaryId;
  readonly depth: number;
  readonly isDissolved: boolean;
}

export function SummaryButtons({ conversation, summary, depth, isDissolved }: SummaryProps) {
  const [open, setOpen] = useState<"rewrite" | "subtree" | "dissolve" | null>(null);
  useKeys("Summary", [
    { keys: ["r"], does: "rewrite this summary", run: () => setOpen("rewrite") },
    ...(isDissolved ? [] : [{ keys: ["d"], does: "dissolve this summary", run: () => setOpen("dissolve" as const) }]),
  ]);
  const close = (): void => setOpen(null);
  return (
    <div class="actions start">
      <Button onClick={() => setOpen("rewrite")}>Rewrite …</Button>
      {depth > 0 && <Button onClick={() => setOpen("subtree")}>Rewrite with all below …</Button>}
      {!isDissolved && <Button onClick={() => setOpen("dissolve")}>Dissolve …</Button>}
      {open === "rewrite" && <RewriteDialog conversation={conversation} select={{ summary }} onClose={close} />}
      {open === "subtree" && (
        <RewriteDialog conversation={conversation} select={{ subtree: summary }} onClose={close} />
      )}
      {open === "dissolve" && (
        <PlanDialog
          request={{ kind: "dissolve", conversation, summary, purge: false }}
          act="Dissolve"
          onClose={close}
        />
      )}
    </div>
  );
}
