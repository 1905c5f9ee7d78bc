/** Buttons that begin a change. On a read-only server the plan can be seen, but not applied. */

import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { ConversationId, SummaryId } from "../../../core/model/types.ts";
import type { ChangeRequest, MessageReading, RewriteSelection } from "../../contract.ts";
import { useKeys } from "../keys.ts";
import { PlanDialog } from "./plan-dialog.tsx";
import { RewriteDialog } from "./rewrite-dialog.tsx";
import { Button } from "./ui.tsx";

interface ButtonProps {
  readonly request: ChangeRequest;
  readonly words: string;
}

function Opening({ words, children }: { readonly words: string; readonly children: (close: () => void) => VNode }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button onClick={() => setOpen(true)}>{words}</Button>
      {isOpen && children(() => setOpen(false))}
    </>
  );
}

export const ChangeButton = ({ request, words }: ButtonProps) => (
  <Opening words={words}>{(close) => <PlanDialog request={request} onClose={close} />}</Opening>
);

interface RewriteProps {
  readonly conversation: ConversationId;
  readonly select: RewriteSelection;
  readonly words: string;
}

export const RewriteButton = ({ words, ...asked }: RewriteProps) => (
  <Opening words={words}>{(close) => <RewriteDialog {...asked} onClose={close} />}</Opening>
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
}

export function SummaryButtons({ conversation, summary, depth }: SummaryProps) {
  const [open, setOpen] = useState<"rewrite" | "subtree" | "dissolve" | null>(null);
  useKeys("Summary", [
    { keys: ["r"], does: "rewrite this summary", run: () => setOpen("rewrite") },
    { keys: ["d"], does: "dissolve this summary", run: () => setOpen("dissolve") },
  ]);
  const close = (): void => setOpen(null);
  return (
    <div class="actions start">
      <Button onClick={() => setOpen("rewrite")}>Rewrite …</Button>
      {depth > 0 && <Button onClick={() => setOpen("subtree")}>Rewrite with all below …</Button>}
      <Button onClick={() => setOpen("dissolve")}>Dissolve …</Button>
      {open === "rewrite" && <RewriteDialog conversation={conversation} select={{ summary }} onClose={close} />}
      {open === "subtree" && (
        <RewriteDialog conversation={conversation} select={{ subtree: summary }} onClose={close} />
      )}
      {open === "dissolve" && (
        <PlanDialog request={{ kind: "dissolve", conversation, summary, purge: false }} onClose={close} />
      )}
    </div>
  );
}
