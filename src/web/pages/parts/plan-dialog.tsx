/** A change in a dialog: the plan first, then a confirmed apply, then the result with an undo at hand. */

import { useEffect, useState } from "preact/hooks";
import type { Applied, ChangeRequest, Failure, Plan } from "../../contract.ts";
import { failureOf, useWork, write } from "../api.ts";
import type { Working } from "../api.ts";
import { useAround } from "../session.ts";
import { Actions, Button, Dialog, FailureNote, Linked, Loading, sentence } from "./ui.tsx";

export const changeTitles: Readonly<Record<ChangeRequest["kind"], string>> = {
  compact: "Compact",
  dissolve: "Dissolve a summary",
  transplant: "Transplant summaries",
  undo: "Undo a change",
  pin: "Keep in every prompt, or no longer",
  fix: "Fix findings",
};

interface Props {
  readonly request: ChangeRequest;
  /** What the button that does it says. */
  readonly act: string;
  readonly onClose: () => void;
}

export const undoWords = "Undo this change";

export function PlanDialog({ request, act, onClose }: Props) {
  const { session } = useAround();
  const [asked, setAsked] = useState(request);
  const [plan, setPlan] = useState<Plan | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [applied, setApplied] = useState<Applied | null>(null);
  const work = useWork();
  useEffect(() => {
    setPlan(null);
    setApplied(null);
    setFailure(null);
    write("plan", asked).then(setPlan, (error: unknown) => setFailure(failureOf(error)));
  }, [JSON.stringify(asked)]);
  const apply = async (): Promise<void> => {
    if (plan === null) return;
    const result = await work.run(async () => await write("apply", { plan: plan.id }));
    if (result?.kind === "applied") setApplied(result);
    else if (result?.kind === "planned again") setPlan(result.plan);
  };
  return (
    <Dialog title={changeTitles[asked.kind]} onClose={onClose} wide>
      {failure !== null && <FailureNote failure={failure} />}
      {plan === null && failure === null && <Loading what="the plan" />}
      {plan !== null && applied === null && (
        <>
          {plan.isAgain && (
            <p role="alert">The conversation has changed meanwhile, so nothing was done. This is the new plan:</p>
          )}
          <Lines lines={plan.lines} />
          {plan.refusal !== null && <FailureNote failure={plan.refusal} />}
          <PlanOptions request={asked} onChange={setAsked} isBusy={work.isBusy} />
          {session.readOnly !== null && <p class="soft">{sentence(session.readOnly)}</p>}
          {work.failure !== null && <FailureNote failure={work.failure} />}
          <Progress work={work} />
          <Actions>
            <Button onClick={onClose}>Cancel</Button>
            <Button
              class="primary"
              disabled={plan.refusal !== null || session.readOnly !== null || work.isBusy}
              onClick={() => void apply()}
            >
              {asked.kind === "undo" && request.kind !== "undo" ? undoWords : act}
            </Button>
          </Actions>
        </>
      )}
      {applied !== null && (
        <Result applied={applied} onClose={onClose} onUndo={(change) => setAsked({ kind: "undo", change })} />
      )}
    </Dialog>
  );
}

/** As the command line prints it; ids are links. */
export const Lines = ({ lines }: { readonly lines: readonly string[] }) => (
  <pre class="lines" tabIndex={0} role="region" aria-label="plan">
    <Linked text={lines.join("\n")} />
  </pre>
);

interface OptionsProps {
  readonly request: ChangeRequest;
  readonly onChange: (request: ChangeRequest) => void;
  readonly isBusy: boolean;
}

function PlanOptions({ request, onChange, isBusy }: OptionsProps) {
  const check = (words: string, isOn: boolean, to: ChangeRequest) => (
    <label class="check">
      <input type="checkbox" checked={isOn} disabled={isBusy} onChange={() => onChange(to)} /> {words}
    </label>
  );
  switch (request.kind) {
    case "compact":
      return (
        <div class="tools">
          {check("Fold short runs, too", request.isForced, { ...request, isForced: !request.isForced })}
          {check("Without a model", request.isLocal, { ...request, isLocal: !request.isLocal })}
        </div>
      );
    case "dissolve":
      return check("Delete its row, too", request.purge, { ...request, purge: !request.purge });
    case "transplant":
    case "undo":
    case "pin":
    case "fix":
      return null;
  }
}

export function Progress({ work: { job, isBusy, stop } }: { readonly work: Working }) {
  if (!isBusy) return null;
  const { done = 0, of = null, words = "starting", stops = false } = job?.progress ?? {};
  return (
    <div class="progress" role="status">
      {of === null ? <progress aria-label={words} /> : <progress value={done} max={of} aria-label={words} />}
      <span>{words}</span>
      {stops && <Button onClick={stop}>Stop</Button>}
    </div>
  );
}

interface EndProps {
  readonly change: number | null;
  readonly onClose: () => void;
  readonly onUndo: (change: number) => void;
}

export const UndoOrClose = ({ change, onClose, onUndo }: EndProps) => (
  <Actions>
    {change !== null && <Button onClick={() => onUndo(change)}>Undo change {change}</Button>}
    <Button class="primary" onClick={onClose}>
      Close
    </Button>
  </Actions>
);

const Result = ({ applied: { words, change }, ...end }: Omit<EndProps, "change"> & { readonly applied: Applied }) => (
  <>
    <p class="done" role="status">
      <span aria-hidden="true">✓</span> <Linked text={sentence(words)} />
    </p>
    <UndoOrClose change={change} {...end} />
  </>
);
