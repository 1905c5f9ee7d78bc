/** Changes: plans that only read, and work that applies exactly what was planned or drafted. */

import { randomUUID } from "node:crypto";
import { diffLines } from "diff";
import { LcmError } from "../core/base/errors.ts";
import type { JsonObject } from "../core/base/json.ts";
import { missingModel } from "../core/maintenance/rewrite.ts";
import type { MessageId, SummaryId } from "../core/model/types.ts";
import { changesAsks, type ChangeRequest, type PlannedChange } from "../operator/changes.ts";
import { planLines, planRefusal, type Ways } from "../operator/plan-lines.ts";
import type { Doing, Port, Trouble } from "../operator/port.ts";
import { rewriteAsks, type Drafted as Draft, type PlannedWork, type RewriteSelection } from "../operator/rewrite.ts";
import { findingLines, planLines as rewriteLines, skippedLines } from "../format/rewrite.ts";
import type { Applied, DiffLine, Drafted, Failure, JobResult, Plan, RewritePlan } from "./contract.ts";
import type * as contract from "./contract.ts";
import { checkHealth } from "./health.ts";
import type { Jobs } from "./jobs.ts";
import { plainPage } from "./plain-page.ts";
import { bodyObject, conversationIn, flagIn, summaryIn, textIn, wholeIn } from "./query.ts";
import type { About, WriteTable } from "./tables.ts";

interface Parts {
  readonly jobs: Jobs;
  readonly about: About;
}

const ways: Ways = {
  foldShortRuns: "short runs can be folded, too",
  foldLocally: "it can be folded without a model",
};

export function createChanges({ jobs, about }: Parts): WriteTable {
  const plans = createShelf<Planned>("plan");
  const rewrites = createShelf<PlannedWork>("plan");
  const drafts = createShelf<Draft>("draft");
  const toPlan = (planned: Planned, isAgain: boolean): Plan =>
    planOf({ ...planned, id: plans.keep(planned) }, isAgain, about);
  return {
    health: async (body) => {
      const given = bodyObject(body);
      const conversation = given["conversation"] === undefined ? null : conversationIn(given);
      return jobs.start("health", async (doing) => ({
        kind: "health",
        health: await checkHealth(conversation, doing),
      }));
    },
    async plan(body, doing) {
      const request = requestIn(bodyObject(body));
      const planned = { request, planned: await changesAsks.planChange({ request }, doing) };
      return toPlan(planned, false);
    },
    async rewritePlan(body, doing) {
      const given = bodyObject(body);
      const conversation = conversationIn(given);
      const select = selectionIn(bodyObject(given["select"], "select"));
      const work = await rewriteAsks.rewritePlan({ conversation, select }, doing);
      return { id: rewrites.keep(work), conversation, ...rewritePlanOf(work, about) };
    },
    jobStop: async (body) => jobs.stop(textIn(bodyObject(body), "id")),
    async apply(body, { port }) {
      const { request, planned } = plans.find(textIn(bodyObject(body), "plan"));
      mayWrite(port);
      return jobs.start("apply", async (doing) => {
        const applied = await changesAsks.applyChange({ request, planned }, doing);
        return applied.kind === "applied"
          ? applied
          : { kind: "planned again", plan: toPlan({ request, planned: applied.planned }, true) };
      });
    },
    async draft(body, { port }) {
      const given = bodyObject(body);
      const [work, summary, isFresh] = [
        rewrites.find(textIn(given, "plan")),
        summaryIn(given),
        flagIn(given, "isFresh"),
      ];
      mayWrite(port);
      const target = work.plan.targets.find((each) => each.summary === summary);
      if (target === undefined) throw new LcmError("not_found", `${summary} is not in this plan`);
      return jobs.start("draft", async (doing) => {
        doing.onProgress({ done: 0, of: null, words: "the model is writing", stops: true });
        const draft = await rewriteAsks.rewriteDraft({ target, isFresh }, doing);
        if (draft.kind === "refused") throw new LcmError("unavailable", draft.message, { hint: draft.hint });
        return { kind: "draft", drafted: draftedOf(summary, draft, (each) => drafts.keep(each)) };
      });
    },
    async rewriteApply(body, { port }) {
      const given = bodyObject(body);
      const draft = drafts.find(textIn(given, "draft"));
      const partOf = given["change"] === undefined ? {} : { change: wholeIn(given, "change") };
      mayWrite(port);
      return jobs.start("rewriteApply", async (doing) => await applyDraft(draft, partOf, doing));
    },
  };
}

/** Refused at once, and not by the work. */
function mayWrite({ readOnly }: Port): void {
  if (readOnly !== null)
    throw new LcmError("denied", `nothing can be changed: ${readOnly}`, { hint: "start it with `lcm web --write`" });
}

/** What pages refer to by id; the oldest make room. */
function createShelf<T>(name: string) {
  const kept = new Map<string, T>();
  return {
    keep(value: T): string {
      const id = randomUUID();
      kept.set(id, value);
      for (const old of [...kept.keys()].slice(0, Math.max(0, kept.size - keptMax))) kept.delete(old);
      return id;
    },
    find(id: string): T {
      const found = kept.get(id);
      if (found === undefined)
        throw new LcmError("not_found", `this ${name} is no longer known`, { hint: "plan it again" });
      return found;
    },
  };
}

const keptMax = 100;

// ── Plans ────────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Planned {
  readonly request: ChangeRequest & contract.ChangeRequest;
  readonly planned: PlannedChange;
}

const planOf = (
  { id, request, planned }: Planned & { readonly id: string },
  isAgain: boolean,
  { zone }: About,
): Plan => ({
  id,
  kind: request.kind,
  request,
  lines: planLines(planned, plainPage(zone), ways),
  refusal: refusalOf(planRefusal(planned, ways)),
  isAgain,
});

const refusalOf = (trouble: Trouble | null): Failure | null =>
  trouble === null ? null : { code: "conflict", ...trouble };

const changeKinds = ["compact", "dissolve", "transplant", "undo", "pin", "fix"] as const;

function requestIn(body: JsonObject): Planned["request"] {
  const kind = changeKinds.find((each) => each === body["kind"]);
  switch (kind) {
    case "compact":
      return {
        kind,
        conversation: conversationIn(body),
        isForced: flagIn(body, "isForced"),
        isLocal: flagIn(body, "isLocal"),
      };
    case "dissolve":
      return { kind, conversation: conversationIn(body), summary: summaryIn(body), purge: flagIn(body, "purge") };
    case "transplant":
      return { kind, source: conversationIn(body, "source"), target: conversationIn(body, "target") };
    case "undo":
      return { kind, change: wholeIn(body, "change") };
    case "pin":
      return { kind, message: wholeIn(body, "message") as MessageId };
    case "fix":
      return { kind, conversation: conversationIn(body) };
    case undefined:
      throw new LcmError("invalid", `kind must be ${changeKinds.join(" or ")}`);
  }
}

// ── Rewrites ─────────────────────────────────────────────────────────────────────────────────────────────────────────

function selectionIn(body: JsonObject): RewriteSelection {
  if (body["repair"] === true) return { repair: true };
  return body["subtree"] === undefined ? { summary: summaryIn(body) } : { subtree: summaryIn(body, "subtree") };
}

function rewritePlanOf(
  { plan, spend, findings, preview }: PlannedWork,
  { zone }: About,
): Omit<RewritePlan, "id" | "conversation"> {
  const page = plainPage(zone);
  const [kept, current] = [new Set<SummaryId>(plan.kept), new Set<SummaryId>(plan.current)];
  const none = plan.targets.length === 0 ? (plan.skipped[0]?.reason ?? "nothing to rewrite") : null;
  const problem = plan.model === null ? missingModel().message : plan.model.problem;
  const why = none ?? problem;
  return {
    targets: plan.targets.map(({ summary, depth, tokens, targetTokens, sourceTokens }) => ({
      summary,
      depth,
      tokens,
      targetTokens,
      sourceTokens,
      state: current.has(summary) ? "current" : kept.has(summary) ? "drafted" : "to draft",
    })),
    lines: [
      ...findingLines(page, findings),
      ...rewriteLines(page, plan, spend, "they can be drafted afresh"),
      ...skippedLines(page, plan),
    ],
    refusal: why === null ? null : { code: "conflict", message: why, hint: null },
    source: preview?.source ?? null,
    above: preview?.above ?? null,
  };
}

type Answer = Awaited<ReturnType<typeof rewriteAsks.rewriteDraft>>;

function draftedOf(
  summary: SummaryId,
  draft: Exclude<Answer, { readonly kind: "refused" }>,
  keep: (draft: Draft) => string,
): Drafted {
  switch (draft.kind) {
    case "current":
      return { kind: "none", summary, why: "its text is already this model's summary of the same sources" };
    case "unusable":
      return { kind: "none", summary, why: draft.reason };
    case "drafted": {
      const { old, summary: now, isKept } = draft;
      return {
        kind: "drafted",
        draft: keep(draft),
        summary,
        old: { text: old.text, tokens: old.tokens },
        new: { text: now.text, tokens: now.tokens, model: now.model },
        diff: linesOf(old.text, now.text),
        isKept,
      };
    }
  }
}

const linesOf = (old: string, now: string): readonly DiffLine[] =>
  diffLines(`${old}\n`, `${now}\n`).flatMap(({ added, removed, value }) =>
    value
      .replace(/\n$/, "")
      .split("\n")
      .map((text) => ({ kind: added ? "new" : removed ? "old" : "same", text }) as const),
  );

async function applyDraft(draft: Draft, partOf: { readonly change?: number }, doing: Doing): Promise<JobResult> {
  const applied = await rewriteAsks.rewriteApply({ draft, partOf }, doing);
  if (applied.kind === "stale") return applied;
  const words: Applied["words"] = `rewrote ${draft.old.id}: ${draft.old.tokens} → ${draft.summary.tokens} tokens`;
  return { kind: "applied", words, change: applied.change };
}
