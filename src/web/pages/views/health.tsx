/** Health: what a check found, the worst first, with what to do about it. */

import { useEffect, useRef, useState } from "preact/hooks";
import { formatCount, plural } from "../../../core/base/format.ts";
import type { ConversationId } from "../../../core/model/types.ts";
import type { FindingGroup, ReportedFinding } from "../../../format/findings.ts";
import type { Health } from "../../contract.ts";
import { onChanged, onJob, useRead, useWork, write } from "../api.ts";
import { useKeys } from "../keys.ts";
import { ChangeButton, RewriteButton } from "../parts/change-buttons.tsx";
import { Progress } from "../parts/plan-dialog.tsx";
import {
  Button,
  Empty,
  FailureNote,
  Figures,
  Heading,
  IdLink,
  Linked,
  Loading,
  sentence,
  Shown,
} from "../parts/ui.tsx";
import { addressOf } from "../router.ts";
import { useAround } from "../session.ts";
import { addressOfId, clipped } from "../words.ts";
import { conversationIdOf, OfConversation } from "./of-conversation.tsx";

export function HealthView() {
  const { place } = useAround();
  const conversation = place.of === "" ? null : conversationIdOf(place.of);
  if (conversation !== null)
    return (
      <OfConversation conversation={conversation} view="health">
        <Check key={conversation} conversation={conversation} />
      </OfConversation>
    );
  return (
    <>
      <Heading title="Health">Health</Heading>
      <Status />
      <h2>Check everything</h2>
      <Check key="all" conversation={null} />
    </>
  );
}

function Status() {
  const asked = useRead("status", {});
  return (
    <Shown asked={asked} what="the status">
      {({ store, totals, usage }) => (
        <Figures
          figures={[
            ["conversations", formatCount(store.conversations)],
            ["messages", formatCount(store.messages)],
            ["summaries", formatCount(store.summaries)],
            ["tokens stored", formatCount(totals.tokens)],
            ["tokens in contexts", formatCount(totals.contextTokens)],
            ["model calls in 24 hours", formatCount(usage.calls)],
            ...(usage.failures === 0 ? [] : [["of them refused", formatCount(usage.failures)] as const]),
          ]}
        />
      )}
    </Shown>
  );
}

/** Checks once when it is opened, and again when asked: a check of a long conversation takes a while. */
function Check({ conversation }: { readonly conversation: ConversationId | null }) {
  const [health, setHealth] = useState<Health | null>(null);
  const [isOld, setOld] = useState(false);
  const work = useWork();
  const check = async (): Promise<void> => {
    setOld(false);
    wasApplied.current = false;
    const result = await work.run(async () => await write("health", conversation === null ? {} : { conversation }));
    if (result?.kind === "health") setHealth(result.health);
  };
  const wasApplied = useRef(false);
  const onClosed = (): void => {
    if (wasApplied.current) void check();
  };
  useEffect(() => {
    void check();
    const forget = onChanged(() => setOld(true));
    // Its dialog shows the result, with an undo; a new check may take the button away that opened it.
    const leave = onJob(({ result }) => {
      if (result?.kind !== "applied") return;
      wasApplied.current = true;
      if (document.querySelector("dialog[open]") === null) void check();
    });
    return () => {
      forget();
      leave();
      // A check that nobody waits for keeps the reader busy.
      work.stop();
    };
  }, []);
  useKeys("Health", [{ keys: ["c"], does: "check again", run: () => void check() }]);
  return (
    <>
      {work.failure !== null && <FailureNote failure={work.failure} again={() => void check()} />}
      <Progress work={work} />
      {health === null && work.failure === null && !work.isBusy && <Loading what="findings" />}
      {health !== null && (
        <>
          {isOld && !work.isBusy && (
            <p class="note" role="status">
              Something was written since this check. <Button onClick={() => void check()}>Check again</Button>
            </p>
          )}
          <Report health={health} conversation={conversation} onClosed={onClosed} />
        </>
      )}
    </>
  );
}

const severities = { error: "Errors", warning: "Warnings", info: "Information" } as const;

interface ReportProps {
  readonly health: Health;
  readonly conversation: ConversationId | null;
  /** After a dialog. */
  readonly onClosed: () => void;
}

function Report({ health, conversation, onClosed }: ReportProps) {
  const { groups, checked, count, fixable, repairable, names } = health;
  const of = (id: ConversationId): string => (id === conversation ? "" : ` of “${clipped(names[id] ?? "")}” (#${id})`);
  const extent = `${plural(checked.messages, "message")} and ${plural(checked.summaries, "summary", "summaries")} checked`;
  const errors = groups
    .filter(({ severity }) => severity === "error")
    .reduce((sum, { findings }) => sum + findings.length, 0);
  const verdict =
    errors > 0
      ? `Problems found: ${plural(errors, "error")}.`
      : count > 0
        ? `Nothing lost or broken, but ${plural(count, "warning")}.`
        : "Healthy.";
  return (
    <>
      <p class={`verdict ${errors > 0 ? "bad" : count > 0 ? "caution" : "good"}`} role="status">
        <span aria-hidden="true">{count === 0 ? "✓" : "!"}</span> {verdict} <span class="soft">{extent}</span>
      </p>
      <div class="actions start">
        {fixable.map(({ conversation: id, count: some }) => (
          <ChangeButton
            key={`fix ${id}`}
            request={{ kind: "fix", conversation: id }}
            words={`Fix ${plural(some, "finding")}${of(id)} …`}
            onClosed={onClosed}
          />
        ))}
        {repairable.map(({ conversation: id }) => (
          <RewriteButton
            key={`repair ${id}`}
            conversation={id}
            select={{ repair: true }}
            words={`Rewrite poor summaries${of(id)} …`}
            onClosed={onClosed}
          />
        ))}
        {conversation !== null && (
          <ChangeButton
            request={{ kind: "compact", conversation, isForced: false, isLocal: false }}
            words="Compact …"
            onClosed={onClosed}
          />
        )}
        {conversation !== null && (
          <a href={addressOf("timeline", conversation, { findings: "true" })}>Show findings on the timeline</a>
        )}
      </div>
      {groups.length === 0 && <Empty title="No findings." />}
      {(["error", "warning", "info"] as const).map((severity) => {
        const of = groups.filter((group) => group.severity === severity);
        return (
          of.length > 0 && (
            <section key={severity} aria-label={severities[severity]}>
              <h2>{severities[severity]}</h2>
              {of.map((group, at) => (
                <Group key={at} group={group} health={health} isOfAll={conversation === null} />
              ))}
            </section>
          )
        );
      })}
    </>
  );
}

const shownPerGroup = 10;

function Group({
  group: { severity, code, findings, sentence: words },
  health: { places, names },
  isOfAll,
}: {
  readonly group: FindingGroup;
  readonly health: Health;
  readonly isOfAll: boolean;
}) {
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? findings : findings.slice(0, shownPerGroup);
  const left = findings.length - shown.length;
  const remedies = [...new Set(findings.flatMap(({ remedy }) => remedy ?? []))];
  return (
    <div class={`finding ${severity}`}>
      <h3>
        <span class={`badge ${severity === "error" ? "bad" : severity === "warning" ? "caution" : ""}`}>
          {severity}
        </span>{" "}
        {words === null ? code.replaceAll("_", " ") : sentence(words)}
      </h3>
      <ul>
        {shown.map((finding, at) => (
          <FindingLine
            key={at}
            finding={finding}
            place={places[finding.subject]}
            isShort={words !== null}
            name={isOfAll && finding.conversation !== null ? (names[finding.conversation] ?? null) : null}
          />
        ))}
      </ul>
      {left > 0 && (
        <Button class="quiet" onClick={() => setWhole(true)}>
          and {formatCount(left)} more
        </Button>
      )}
      {remedies.length > 0 && (
        <p class="soft small">
          At a terminal:{" "}
          {remedies.slice(0, shownPerGroup).map((remedy, at) => (
            <>
              {at > 0 && ", "}
              <code>{remedy}</code>
            </>
          ))}
          {remedies.length > shownPerGroup && ` and ${formatCount(remedies.length - shownPerGroup)} more`}
        </p>
      )}
    </div>
  );
}

interface LineProps {
  readonly finding: ReportedFinding;
  readonly place: { readonly from: number; readonly to: number } | undefined;
  readonly isShort: boolean;
  /** Of its conversation, where that is not clear. */
  readonly name: string | null;
}

const FindingLine = ({ finding: { subject, message, conversation }, place, isShort, name }: LineProps) => (
  <li>
    {addressOfId(subject) !== null && (
      <>
        <IdLink id={subject} />{" "}
      </>
    )}
    {!isShort && <Linked text={sentence(message)} />}
    {name !== null && conversation !== null && (
      <>
        {" "}
        · in <a href={addressOf("health", conversation)}>{clipped(name)}</a> #{conversation}
      </>
    )}
    {place !== undefined && conversation !== null && (
      <>
        {" "}
        ·{" "}
        <a
          href={addressOf("timeline", conversation, {
            from: place.from,
            to: place.to,
            focus: subject,
            findings: "true",
          })}
        >
          timeline
        </a>
      </>
    )}
  </li>
);
