import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { planFix } from "./plan-fix.ts";
import { inspectConversation, inspectFile, isSound } from "./inspect.ts";
import type { Finding } from "./inspect.ts";
import type { ConversationId, MessageId, Sources, SummaryId, Totals } from "../model/types.ts";
import type { Skeleton, SummaryFacts } from "../model/store.ts";
import type { Timestamp } from "../base/time.ts";

const time = (minute: number): Timestamp => `2026-01-01T00:0${minute}:00.000Z` as Timestamp;
const totals: Totals = {
  messages: 4,
  messageTokens: 40,
  summaries: 1,
  contextItems: 3,
  contextTokens: 25,
  contextMessages: 2,
  contextMessageTokens: 20,
};
const leaf: SummaryFacts = {
  id: "sum_a",
  depth: 0,
  kind: "leaf",
  tokens: 5,
  level: "normal",
  earliestAt: time(1),
  latestAt: time(2),
  descendants: 0,
  carriedFrom: null,
  rewriteReason: null,
  empty: false,
  marked: false,
  garbled: false,
  released: false,
};
const messageItem = (id: number) =>
  ({ kind: "message", id: id as MessageId, ordinal: id, tokens: 10, depth: -1 }) as const;
const summaryItem = (id: SummaryId, ordinal: number, depth = 0) =>
  ({ kind: "summary", id, ordinal, tokens: 5, depth }) as const;
const of = (messages: readonly number[], summaries: readonly SummaryId[] = []): Sources => ({
  messages: messages as readonly MessageId[],
  summaries,
});

/** Four messages, the first two folded into a leaf. */
const sound: Skeleton = {
  conversation: {
    id: 7 as ConversationId,
    sessionId: "s",
    sessionKey: null,
    agentId: null,
    folder: null,
    parentSessionId: null,
    active: true,
    hidden: false,
    title: null,
    createdAt: time(0),
    updatedAt: time(0),
    lastMessageAt: time(4),
    totals,
    revision: 1,
    hostCursor: null,
    fileCursor: null,
    promptBudget: null,
    caughtUp: 0,
    forgets: 0,
  },
  recounted: totals,
  context: [summaryItem("sum_a", 1), messageItem(3), messageItem(4)],
  messageIds: [1, 2, 3, 4],
  messageSeqs: [1, 2, 3, 4],
  messageTimes: [time(1), time(2), time(3), time(4)],
  messageTokens: [10, 10, 10, 10],
  asides: new Set(),
  copies: new Set(),
  summaries: [leaf],
  sources: new Map([["sum_a", of([1, 2])]]),
  dangling: [],
  gone: [],
  search: { missing: [], pending: 0 },
  missingFiles: [],
  alteredFiles: [],
  oddFiles: [],
  orphanedFiles: 0,
};

const inspectWith = (changed: Partial<Skeleton>): readonly Finding[] => inspectConversation({ ...sound, ...changed });
const codes = (findings: readonly Finding[]): readonly string[] => [...new Set(findings.map(({ code }) => code))];

describe("inspecting a conversation", () => {
  it("finds nothing in a sound one", () => {
    assert.deepEqual(inspectConversation(sound), []);
    assert.ok(isSound([]));
  });

  const faults: Record<string, readonly [Partial<Skeleton>, string]> = {
    "a message that the context does not reach": [
      { context: [summaryItem("sum_a", 1), messageItem(3)] },
      "lost_message",
    ],
    "a message both in the context and under a summary": [
      { context: [summaryItem("sum_a", 1), messageItem(2), messageItem(3), messageItem(4)] },
      "doubled_message",
    ],
    "a message out of order": [{ context: [summaryItem("sum_a", 1), messageItem(4), messageItem(3)] }, "out_of_order"],
    "a total that the rows do not add up to": [{ recounted: { ...totals, contextTokens: 24 } }, "wrong_totals"],
    "a summary without sources": [{ sources: new Map([["sum_a", of([])]]), asides: new Set([1, 2]) }, "no_sources"],
    "a leaf that claims a depth": [{ summaries: [{ ...leaf, depth: 1 }] }, "wrong_depth"],
    "a leaf marked as condensed": [{ summaries: [{ ...leaf, kind: "condensed" }] }, "wrong_depth"],
    "a range that its sources do not span": [{ summaries: [{ ...leaf, latestAt: time(3) }] }, "wrong_range"],
    "a wrong descendant count": [{ summaries: [{ ...leaf, descendants: 2 }] }, "wrong_descendants"],
    "a summary that is its own source": [
      {
        summaries: [{ ...leaf, kind: "condensed", depth: 1 }],
        sources: new Map([["sum_a", of([], ["sum_a"])]]),
        asides: new Set([1, 2]),
      },
      "cycle",
    ],
    "an empty summary": [{ summaries: [{ ...leaf, empty: true }] }, "empty_summary"],
    "a leaf as long as its messages": [{ summaries: [{ ...leaf, tokens: 20 }] }, "summary_too_long"],
    "a condensed summary longer than its sources": [
      {
        summaries: [leaf, { ...leaf, id: "sum_b", kind: "condensed", depth: 1, descendants: 1, tokens: 6 }],
        sources: new Map([...sound.sources, ["sum_b", of([], ["sum_a"])]]),
        context: [summaryItem("sum_b", 1, 1), messageItem(3), messageItem(4)],
      },
      "summary_too_long",
    ],
    "a truncated summary": [{ summaries: [{ ...leaf, level: "truncated" }] }, "summary_below_normal"],
    "a summary marked for rewrite": [
      { summaries: [{ ...leaf, rewriteReason: "a secret was forgotten" }] },
      "summary_outdated",
    ],
    "a dangling reference": [{ dangling: [{ table: "context_items", from: "3", to: "99" }] }, "dangling_reference"],
    "a row missing from the search index": [
      { search: { missing: [2 as MessageId], pending: 0 } },
      "search_entry_missing",
    ],
    "a missing message": [{ gone: [{ message: 2 as MessageId, summary: "sum_a" }] }, "missing_message"],
    "a file that was cut": [
      { alteredFiles: [{ id: "file_0123456789abcdef", stored: 2_000, found: 1_000 }] },
      "altered_file",
    ],
    "a file without its content": [{ missingFiles: ["file_0123456789abcdef"] }, "missing_file"],
    "a link in the place of a file": [
      { oddFiles: [{ id: "file_0123456789abcdef", what: "a symbolic link" }] },
      "odd_file",
    ],
    "a time that is not UTC with milliseconds": [
      { messageTimes: [time(1), time(2), time(3), "2026-01-01 00:04:00"] },
      "odd_time",
    ],
  };
  for (const [name, [changed, code]] of Object.entries(faults)) {
    it(`finds ${name}`, () => {
      const findings = inspectWith(changed);
      assert.ok(codes(findings).includes(code), `${code} in ${codes(findings).join()}`);
      assert.ok(!isSound(findings));
      assert.ok(
        findings.every(({ conversation, message }) => conversation === sound.conversation.id && message !== ""),
      );
    });
  }

  it("accepts asides, copies in front, carried summaries and extracted texts", () => {
    assert.deepEqual(inspectWith({ context: [summaryItem("sum_a", 1), messageItem(3)], asides: new Set([4]) }), []);
    assert.deepEqual(
      inspectWith({ context: [messageItem(3), messageItem(4), summaryItem("sum_a", 9)], copies: new Set([3, 4]) }),
      [],
    );
    assert.deepEqual(codes(inspectWith({ summaries: [{ ...leaf, level: "extractive" }] })), ["summary_below_normal"]);
    for (const level of ["extractive", "aggressive"] as const)
      assert.ok(isSound(inspectWith({ summaries: [{ ...leaf, level }] })));
    assert.deepEqual(
      codes(inspectWith({ summaries: [{ ...leaf, tokens: 30, rewriteReason: "a secret was forgotten" }] })),
      ["summary_outdated"],
    );
    const carried = { ...leaf, id: "sum_c" as SummaryId, depth: 2, kind: "condensed", carriedFrom: "sum_x" } as const;
    assert.deepEqual(
      inspectWith({ summaries: [leaf, carried], context: [summaryItem("sum_c", 0, 2), ...sound.context] }),
      [],
    );
  });

  it("names the fix or another remedy", () => {
    const remedies = (changed: Partial<Skeleton>): readonly (string | null)[] => [
      ...new Set(inspectWith(changed).map(({ remedy }) => remedy)),
    ];
    const fix = ["lcm doctor 7 --fix --apply"];
    assert.deepEqual(remedies({ context: [summaryItem("sum_a", 1), messageItem(4), messageItem(3)] }), fix);
    assert.deepEqual(remedies({ context: [summaryItem("sum_a", 1), messageItem(2), ...sound.context.slice(1)] }), fix);
    assert.deepEqual(
      remedies({ context: sound.context.slice(1) }),
      fix,
      "also for the summary that is out of the context",
    );
    assert.deepEqual(remedies({ recounted: { ...totals, messages: 3 } }), fix);
    assert.deepEqual(remedies({ summaries: [{ ...leaf, depth: 3, descendants: 4, latestAt: null }] }), fix);
    assert.deepEqual(remedies({ search: { missing: [3 as MessageId, "sum_a"], pending: 0 } }), fix);
    assert.deepEqual(remedies({ messageTimes: [time(1), time(2), time(3), "2026-01-01 00:04:00"] }), fix);
    assert.deepEqual(remedies({ messageTimes: [time(1), time(2), time(3), "soon"] }), ["lcm restore"]);
    assert.deepEqual(remedies({ missingFiles: ["file_0123456789abcdef"] }), ["lcm restore"]);
    assert.deepEqual(remedies({ gone: [{ message: 7 as MessageId, summary: null }] }), ["lcm restore"]);
    for (const level of ["extractive", "truncated"] as const)
      assert.deepEqual(remedies({ summaries: [{ ...leaf, level }] }), ["lcm repair 7"]);
    assert.deepEqual(remedies({ summaries: [{ ...leaf, level: "aggressive" }] }), ["lcm rewrite 7 --summary sum_a"]);
  });

  it("names the summary to dissolve if two cover the same message, or one belongs inside another", () => {
    const other = { ...leaf, id: "sum_b" as SummaryId, earliestAt: time(2), latestAt: time(3) };
    const doubled = inspectWith({
      summaries: [leaf, other],
      sources: new Map([...sound.sources, ["sum_b", of([2, 3])]]),
      context: [summaryItem("sum_a", 1), summaryItem("sum_b", 2), messageItem(4)],
    });
    assert.deepEqual(
      doubled.map(({ code, subject, remedy }) => [code, subject, remedy]),
      [["doubled_message", "msg_0-2", "lcm dissolve 7 --summary sum_b"]],
    );
    const inside = inspectWith({
      summaries: [{ ...leaf, latestAt: time(3) }],
      sources: new Map([["sum_a", of([1, 3])]]),
      context: [summaryItem("sum_a", 1), messageItem(2), messageItem(4)],
    });
    assert.deepEqual(
      inside.map(({ code, subject, remedy }) => [code, subject, remedy]),
      [["out_of_order", "msg_0-2", "lcm dissolve 7 --summary sum_a"]],
    );
  });

  it("reports one fault once", () => {
    assert.deepEqual(codes(inspectWith({ context: [...sound.context, messageItem(2)] })), ["doubled_message"]);
    const above = { ...leaf, id: "sum_b" as SummaryId, kind: "condensed", depth: 5, descendants: 3 } as const;
    const circle = inspectWith({
      summaries: [{ ...above, id: "sum_a" }, above],
      sources: new Map([
        ["sum_a", of([], ["sum_b"])],
        ["sum_b", of([], ["sum_a"])],
      ]),
      asides: new Set([1, 2]),
    });
    // Each is as long as the other, of course.
    assert.deepEqual(
      codes(circle),
      ["cycle", "summary_too_long"],
      "nothing follows from what is among its own sources",
    );
  });

  it("finds the older program's mark and binary data in a normal text", () => {
    for (const flaw of ["marked", "garbled"] as const) {
      const [found, ...others] = inspectWith({ summaries: [{ ...leaf, [flaw]: true }] });
      assert.deepEqual(others, []);
      assert.deepEqual(
        [found?.code, found?.severity, found?.remedy],
        ["summary_below_normal", "warning", "lcm repair 7"],
      );
    }
  });

  it("reports an unused summary as info, unless it was dissolved or is carried", () => {
    const context = [1, 2, 3, 4].map(messageItem);
    const [found, ...others] = inspectWith({ context });
    assert.deepEqual(others, []);
    assert.deepEqual(
      [found?.code, found?.severity, found?.remedy],
      ["unused_summary", "info", "lcm dissolve 7 --summary sum_a --purge"],
    );
    assert.deepEqual(inspectWith({ context, summaries: [{ ...leaf, released: true }] }), []);
  });

  it("finds sources in the wrong order, even if the context does not reach the summary", () => {
    const context = [1, 2, 3, 4].map(messageItem);
    const summaries = [{ ...leaf, released: true }];
    assert.deepEqual(inspectWith({ context, summaries }), []);
    assert.deepEqual(codes(inspectWith({ context, summaries, sources: new Map([["sum_a", of([2, 1])]]) })), [
      "out_of_order",
    ]);
  });

  it("reports the number of orphaned files as info", () => {
    const [found, ...others] = inspectWith({ orphanedFiles: 3 });
    assert.ok(found !== undefined && others.length === 0 && isSound([found]));
    assert.equal(found.code, "file_orphaned");
    assert.match(found.message, /orphaned files in its folder: 3,/);
  });

  it("reports unindexed rows only if there are unusually many", () => {
    assert.deepEqual(inspectWith({ search: { missing: [], pending: 300 } }), []);
    assert.ok(isSound(inspectWith({ search: { missing: [], pending: 50_000 } })));
    assert.deepEqual(codes(inspectWith({ search: { missing: [], pending: 50_000 } })), ["search_pending"]);
  });
});

describe("a summary with both kinds of sources", () => {
  it("is reported, but not fixed: which source is wrong is unknown", () => {
    const mixed: SummaryFacts = {
      ...leaf,
      id: "sum_b",
      kind: "condensed",
      depth: 1,
      descendants: 1,
      latestAt: time(3),
    };
    const skeleton: Skeleton = {
      ...sound,
      summaries: [leaf, mixed],
      sources: new Map([...sound.sources, ["sum_b", of([3], ["sum_a"])]]),
      context: [summaryItem("sum_b", 1, 1), messageItem(4)],
    };
    assert.ok(codes(inspectConversation(skeleton)).includes("wrong_depth"));
    assert.deepEqual(planFix(skeleton)?.summaries ?? [], []);
  });
});

describe("the order after a fix", () => {
  const leafOf = (id: SummaryId, from: number, to: number): SummaryFacts => ({
    ...leaf,
    id,
    earliestAt: time(from),
    latestAt: time(to),
  });
  const orderOf = (changed: Partial<Skeleton>): readonly unknown[] | undefined =>
    planFix({ ...sound, ...changed })?.context?.items.map(({ id }) => id);

  it("keeps the order of overlapping summaries, and moves the items around them", () => {
    const tangled = {
      summaries: [leafOf("sum_a", 1, 3), leafOf("sum_b", 2, 2)],
      sources: new Map([
        ["sum_a" as SummaryId, of([1, 3])],
        ["sum_b" as SummaryId, of([2])],
      ]),
    };
    const [a, b] = [summaryItem("sum_a", 2), summaryItem("sum_b", 1)];
    assert.equal(orderOf({ ...tangled, context: [b, a, messageItem(4)] }), undefined);
    assert.deepEqual(orderOf({ ...tangled, context: [messageItem(4), b, a] }), ["sum_b", "sum_a", 4]);
  });

  it("counts the items that are added and dropped", () => {
    const context = [summaryItem("sum_a", 1), messageItem(2), messageItem(3), messageItem(3)];
    const plan = planFix({ ...sound, context })?.context;
    assert.deepEqual([plan?.added, plan?.dropped, plan?.reordered], [1, 2, false]);
  });

  it("keeps copies in front of the items that they precede", () => {
    const raw = { summaries: [], sources: new Map() };
    const items = (...ids: readonly number[]) => ids.map(messageItem);
    assert.deepEqual(orderOf({ ...raw, copies: new Set([4]), context: items(4, 2, 1, 3) }), [4, 1, 2, 3]);
    assert.deepEqual(orderOf({ ...raw, copies: new Set([4]), context: items(2, 4, 1, 3) }), [4, 1, 2, 3]);
    assert.deepEqual(orderOf({ ...raw, copies: new Set([1]), context: items(2, 1, 4) }), [2, 3, 1, 4]);
    assert.deepEqual(orderOf({ ...raw, copies: new Set([4]), context: items(1, 2, 3) }), [4, 1, 2, 3]);
  });
});

describe("inspecting the file", () => {
  it("reports problems of the database engine and of references", () => {
    assert.deepEqual(
      inspectFile({
        problems: [],
        dangling: [],
        orphanedRows: {},
        orphanedSearchEntries: 0,
        unchecked: 0,
        exposures: [],
      }),
      [],
    );
    const findings = inspectFile({
      problems: ["row 3 missing from index"],
      dangling: [{ table: "turns", from: "1", to: "conversations" }],
      orphanedRows: { message_parts: 3 },
      orphanedSearchEntries: 2,
      exposures: [
        { path: "/home/a b/lcm.db", isToEveryone: true },
        { path: "/home/lcm-files", isToEveryone: false },
      ],
      unchecked: 0,
    });
    assert.deepEqual(
      findings.map(({ code, subject, remedy }) => [code, subject, remedy]),
      [
        ["damaged_file", "database", "lcm restore"],
        ["dangling_reference", "turns", "lcm restore"],
        ["orphaned_rows", "message_parts", "lcm doctor --fix --apply"],
        ["search_entry_orphaned", "search", "lcm doctor --fix --apply"],
        ["exposed_file", "/home/a b/lcm.db", "chmod -R go= '/home/a b/lcm.db'"],
        ["exposed_file", "/home/lcm-files", "chmod -R go= /home/lcm-files"],
      ],
    );
  });
});
