import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ProxyReport } from "../../core/model/proxy-report.ts";
import type { CompactionRecord, ConversationId } from "../../core/model/types.ts";
import { createPaint } from "../../format/paint.ts";
import type { Status } from "../../format/status.ts";
import type { Frame } from "../contract.ts";
import { advance, open } from "../layers.ts";
import type { StatusReport } from "./asks.ts";
import { statusModule } from "./screen.ts";
import type { StatusScreen } from "./screen.ts";
import type { Timestamp } from "../../core/base/time.ts";
import { widthOf } from "../../format/width.ts";

const now = "2026-02-17T07:37:00.000Z" as Timestamp;
const frame: Frame = {
  columns: 80,
  bounds: 80,
  rows: 60,
  paint: createPaint(false),
  zone: "UTC",
  typed: (words) => words,
  now,
  readOnly: null,
  beat: 0,
};

const pressure = {
  conversation: 3 as ConversationId,
  kind: "sweep",
  budget: 1_000,
  thresholdTokens: 750,
  targetTokens: 500,
  promptTokens: 900,
  rawTokens: 800,
} as const;

const compaction: CompactionRecord = {
  conversation: 3 as ConversationId,
  at: "2026-02-17T07:30:00.000Z" as Timestamp,
  mode: "sweep",
  asked: false,
  outcome: "waiting",
  message: "the model refused: 429",
  passes: 0,
  tokensBefore: 900,
  tokensAfter: 900,
  durationMs: 12,
};

const status: Status = {
  store: {
    path: "/state/lcm.db",
    schemaVersion: 1,
    bytes: 2_000_000,
    conversations: 3,
    messages: 1_234,
    summaries: 40,
    belowNormal: { aggressive: 0, extractive: 2, truncated: 1 },
    files: 0,
    unindexed: 7,
    vectors: [],
    embedders: [],
  },
  totals: { tokens: 10_000, contextTokens: 900, hidden: 1 },
  newest: null,
  pressures: [pressure],
  compactions: [compaction],
  usage: { calls: 5, inputTokens: 100, outputTokens: 10, failures: 1, open: 0, embedCalls: 0, embedTokens: 0 },
  spend: {
    usage: { calls: 120, inputTokens: 0, outputTokens: 0, failures: 0, open: 0, embedCalls: 0, embedTokens: 0 },
    callsMax: 120,
    windowMinutes: 60,
    breakers: [{ provider: "anthropic", model: "m", at: now, until: now }],
  },
  embedder: null,
  model: { name: "anthropic/claude", from: "LCM_SUMMARY_MODEL", problem: "there is no key" },
  prompts: { sources: { leaf: "built-in" }, problems: new Map() },
  settings: [{ key: "freshTailCount", env: "LCM_FRESH_TAIL_COUNT", value: 8, source: "environment" }],
  misplaced: [],
  backups: [{ path: "/state/lcm.db.backup", bytes: 1_000 }],
};

const proxy: ProxyReport = {
  program: "claude",
  pid: 77,
  port: 40_000,
  startedAt: "2026-02-17T07:00:00.000Z" as Timestamp,
  endedAt: null,
  isRunning: true,
  sessions: [
    {
      host: "claude-code",
      session: "s1",
      turns: 12,
      requests: 40,
      replaced: 20,
      refused: 0,
      bytesAsked: 4_000_000,
      bytesSent: 1_000_000,
      bytesKept: 900_000,
      tokensInput: 250_000,
      tokensCached: 200_000,
      tokensSaved: 750_000,
      whyUnchanged: "",
      lastAt: now,
    },
  ],
  problems: [],
};

const report: StatusReport = {
  status,
  fullest: [{ ...pressure, name: "船の予約 🚢 The ferry" }],
  one: null,
  proxies: [proxy],
};

const shown = (room: Frame = frame, of: StatusReport = report): string =>
  statusModule
    .draw({ kind: "status", conversation: null, report: of, trouble: null, isBackingUp: false, top: 0 }, room)
    .join("\n");

describe("guarantee 27: one status", () => {
  it("shows what proxies do: turns, what they save, what can be cached, and why requests are only stored", () => {
    const [session] = proxy.sessions;
    assert.ok(session);
    const room = { ...frame, rows: 200, columns: 100 };
    const text = shown(room);
    for (const words of [
      /claude, since 2026-02-17 07:00.*running on port 40000, process 77/,
      /claude-code s1: 12 turns, 40 requests, 20 with summaries +\n/,
      /about 750,000 tokens saved/,
      /90% as in the request before; the provider read 80% of 250,000 tokens from its cache/,
    ])
      assert.match(text, words);
    const why = "it is sent with a subscription, not with an API key";
    const ended = { ...proxy, isRunning: false, sessions: [{ ...session, refused: 3, whyUnchanged: why }] };
    const problems = [{ at: now, doing: "planning a request", message: "the disk\nis full" }];
    const after = shown(room, { ...report, proxies: [{ ...ended, problems }] });
    assert.match(after, /ended without a report/);
    assert.match(after, /3 refused/);
    assert.match(after, /unchanged: it is sent with a subscription/);
    assert.match(after, /while planning a request: the disk is full/);
    assert.doesNotMatch(shown(room, { ...report, proxies: [] }), /proxies/);
  });

  it("shows what is stored, pending and compacted, the model, backups and settings", () => {
    for (const words of [
      /database +\/state\/lcm\.db/,
      /summaries +40, 2 extracted, 1 truncated/,
      /search +7 rows not indexed yet/,
      /compaction is due in 1 conversation/,
      /3 {2}━+╋?━*[─┼]* +90% {2}船の予約 🚢 The ferry +sweep due/,
      /7 min ago +3 +900 → 900 +the model refused: 429/,
      /anthropic\/claude \(LCM_SUMMARY_MODEL\)/,
      /there is no key/,
      /120 of 120 in the last hour: passes wait/,
      /anthropic rejected the credential/,
      /backups +\/state\/lcm\.db\.backup/,
      /freshTailCount = 8 \(environment, LCM_FRESH_TAIL_COUNT\)/,
    ])
      assert.match(shown(), words);
  });

  it("does not repeat in the message of a compaction what its columns show", () => {
    const message = "184,806 → 7,184 tokens in 11 passes; nothing is left to fold";
    const done = { ...compaction, outcome: "settled", message, passes: 11, tokensBefore: 184_806, tokensAfter: 7_184 };
    const drawn = (columns: number): string =>
      shown({ ...frame, columns, bounds: columns }, { ...report, status: { ...status, compactions: [done] } });
    assert.match(drawn(120), /184,806 → 7,184 +11 passes +nothing is left to fold/);
    assert.match(drawn(90), /184,806 → 7,184 +11 passes; nothing is left to fold/);
  });

  it("fits narrow rooms and wide ones", () => {
    for (const columns of [50, 80, 120, 200])
      for (const line of shown({ ...frame, columns, bounds: columns }).split("\n"))
        assert.ok(widthOf(line) <= columns, line);
  });

  it("reads again after a change, and keeps the old status until then", () => {
    const state: StatusScreen = { ...open({ kind: "status", conversation: null }).state, report };
    const step = advance(statusModule, state, { kind: "changed" }, frame);
    assert.deepEqual(step.asks, [{ kind: "status", conversation: null }]);
    assert.equal(step.state.report, report);
  });

  it("scrolls to its end, and shows the position", () => {
    const small = { ...frame, rows: 10 };
    const state: StatusScreen = { ...open({ kind: "status", conversation: null }).state, report };
    const last = advance(statusModule, state, { kind: "pressed", name: "G" }, small);
    assert.match(statusModule.draw(last.state, small).join("\n"), /settings +freshTailCount[^]*100%/);
  });
});
