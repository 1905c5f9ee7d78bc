/** Rewriting summaries: which and in which order, then one draft after the other beside the old text, each confirmed. */

import { useEffect, useState } from "preact/hooks";
import { formatCount, plural } from "../../../core/base/format.ts";
import type { ConversationId } from "../../../core/model/types.ts";
import type { Drafted, Failure, RewritePlan, RewriteSelection } from "../../contract.ts";
import { failureOf, useWork, write } from "../api.ts";
import { useAround } from "../session.ts";
import { SideBySide } from "./diff.tsx";
import { Lines, PlanDialog, Progress, undoWords, UndoOrClose } from "./plan-dialog.tsx";
import { Actions, Button, Dialog, FailureNote, Linked, Loading, sentence } from "./ui.tsx";

interface Props {
  readonly conversation: ConversationId;
  readonly select: RewriteSelection;
  readonly onClose: () => void;
}

export function RewriteDialog({ conversation, select, onClose }: Props) {
  const [plan, setPlan] = useState<RewritePlan | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [undone, setUndone] = useState<number | null>(null);
  useEffect(() => {
    write("rewritePlan", { conversation, select }).then(setPlan, (error: unknown) => setFailure(failureOf(error)));
  }, []);
  if (undone !== null)
    return <PlanDialog request={{ kind: "undo", change: undone }} act={undoWords} onClose={onClose} />;
  return (
    <Dialog title="Rewrite" onClose={onClose} wide>
      {failure !== null && <FailureNote failure={failure} />}
      {plan === null && failure === null && <Loading what="the plan" />}
      {plan !== null && <Steps plan={plan} onClose={onClose} onUndo={setUndone} />}
    </Dialog>
  );
}

interface StepsProps {
  readonly plan: RewritePlan;
  readonly onClose: () => void;
  readonly onUndo: (change: number) => void;
}

/** Where the drafts are: which target is next, its draft, and the change that all applied ones belong to. */
function useSteps(plan: RewritePlan) {
  const [at, setAt] = useState(0);
  const [drafted, setDrafted] = useState<Drafted | null>(null);
  const [change, setChange] = useState<number | null>(null);
  const [count, setCount] = useState(0);
  const [notes, setNotes] = useState<readonly string[]>([]);
  const work = useWork();
  const target = plan.targets[at];
  const next = (): void => {
    setDrafted(null);
    setAt(at + 1);
  };
  const draft = async (isFresh: boolean): Promise<void> => {
    if (target === undefined) return;
    const { summary } = target;
    const result = await work.run(async () => await write("draft", { plan: plan.id, summary, isFresh }));
    if (result?.kind === "draft") setDrafted(result.drafted);
    else if (result?.kind === "stale") setNotes([...notes, `${summary}: ${result.reason}`]);
  };
  const apply = async (): Promise<void> => {
    if (drafted?.kind !== "drafted") return;
    const together = change === null ? {} : { change };
    const result = await work.run(async () => await write("rewriteApply", { draft: drafted.draft, ...together }));
    if (result === null) return;
    if (result.kind === "applied") {
      setChange(result.change);
      setCount(count + 1);
    } else if (result.kind === "stale") setNotes([...notes, `${drafted.summary}: ${result.reason}`]);
    next();
  };
  return { at, target, drafted, change, count, notes, work, next, draft, apply };
}

function Steps({ plan, onClose, onUndo }: StepsProps) {
  const { session } = useAround();
  const steps = useSteps(plan);
  const { at, target, drafted, change, count, notes, work } = steps;
  if (target === undefined)
    return (
      <>
        <p class="done" role="status">
          {count === 0 ? "Nothing was rewritten." : `✓ ${plural(count, "summary", "summaries")} rewritten.`}
        </p>
        {notes.map((note) => (
          <p key={note}>{note}</p>
        ))}
        <UndoOrClose change={change} onClose={onClose} onUndo={onUndo} />
      </>
    );
  return (
    <>
      {drafted === null && at === 0 && <Lines lines={plan.lines} />}
      <p>
        {plan.targets.length > 1 && `${at + 1} of ${plan.targets.length}: `}
        <Linked text={target.summary} />, d{target.depth}, {formatCount(target.tokens)} tokens, from{" "}
        {formatCount(target.sourceTokens)} tokens of sources
      </p>
      {plan.refusal !== null && <FailureNote failure={plan.refusal} />}
      {session.readOnly !== null && <p class="soft">{sentence(session.readOnly)}</p>}
      <p class="visually-hidden" role="status">
        {drafted?.kind === "drafted" && "Draft ready."}
      </p>
      {drafted !== null && <DraftView drafted={drafted} />}
      {work.failure !== null && <FailureNote failure={work.failure} />}
      <Progress work={work} />
      <StepButtons
        steps={steps}
        isSingle={plan.targets.length === 1}
        isRefused={plan.refusal !== null || session.readOnly !== null}
        onClose={onClose}
      />
    </>
  );
}

interface StepButtonsProps {
  readonly steps: ReturnType<typeof useSteps>;
  readonly isSingle: boolean;
  readonly isRefused: boolean;
  readonly onClose: () => void;
}

function StepButtons({
  steps: { drafted, count, work, next, draft, apply },
  isSingle,
  isRefused,
  onClose,
}: StepButtonsProps) {
  const { isBusy } = work;
  return (
    <Actions>
      <Button onClick={onClose}>{count === 0 ? "Cancel" : "Stop here"}</Button>
      {!isSingle && (
        <Button disabled={isBusy} onClick={next}>
          Skip
        </Button>
      )}
      {drafted !== null && (
        <Button disabled={isBusy} onClick={() => void draft(true)}>
          Draft again
        </Button>
      )}
      {drafted === null ? (
        <Button class="primary" disabled={isBusy || isRefused} onClick={() => void draft(false)}>
          Draft
        </Button>
      ) : (
        <Button class="primary" disabled={isBusy || drafted.kind !== "drafted"} onClick={() => void apply()}>
          Apply this draft
        </Button>
      )}
    </Actions>
  );
}

function DraftView({ drafted }: { readonly drafted: Drafted }) {
  if (drafted.kind === "none") return <p role="status">{sentence(drafted.why)}</p>;
  const { old, new: made, diff, isKept } = drafted;
  return (
    <>
      {isKept && <p class="soft">This draft was kept from an earlier run; no model was called.</p>}
      <SideBySide
        lines={diff}
        oldTitle={`now, ${formatCount(old.tokens)} tokens`}
        newTitle={`draft${made.model === null ? "" : ` by ${made.model}`}, ${formatCount(made.tokens)} tokens`}
      />
    </>
  );
}
