/** Markup and scripts in everything that is stored: the page shows them, and nothing runs or is loaded. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { createLcm } from "../../src/core/lcm.ts";
import { resolveSettings } from "../../src/core/model/settings.ts";
import type { HostMessage } from "../../src/core/messages/codec.ts";
import { systemClock } from "../../src/index.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { summary } from "../store-contract/ground.ts";
import { withoutBrowser } from "../support/platform.ts";
import { portOver } from "../support/robot.ts";
import { makeScratch } from "../support/scratch.ts";
import { startExplorer, visit, type Visitor } from "../support/visitor.ts";

const evil = [
  `<script>window.pwned = "script"</script>`,
  `<img src="x" onerror="window.pwned = 'img'">`,
  `<svg onload="window.pwned = 'svg'"><a href="javascript:window.pwned=1">x</a></svg>`,
  `<iframe src="https://evil.example/"></iframe><link rel=stylesheet href="https://evil.example/a.css">`,
  `![picture](https://evil.example/p.png) [link](javascript:alert(1)) [run](javascript:window.pwned=1) <https://evil.example/auto>`,
  `<style>body { display: none }</style> {{constructor.constructor("alert(1)")()}}`,
].join("\n\n");

const said: readonly HostMessage[] = [
  { role: "user", content: `# Heading ${evil}` },
  {
    role: "assistant",
    content: [
      { type: "thinking", thinking: evil },
      {
        type: "text",
        text: `\`\`\`html\n${evil}\n\`\`\`\n\n| a | b |\n|---|---|\n| ${evil.replaceAll("\n", " ").replaceAll("|", "")} | x |`,
      },
      { type: "toolCall", id: "c1", name: evil, arguments: { command: evil, [evil]: evil } },
    ],
  },
  { role: "toolResult", toolCallId: "c1", toolName: evil, content: [{ type: "text", text: evil }] },
  {
    role: "user",
    content: [
      {
        type: "image",
        data: Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg" onload="top.pwned=1"/>`).toString("base64"),
        mimeType: "image/svg+xml",
      },
    ],
  },
  { role: "user", content: `${evil}\n`.repeat(400) },
];

describe("hostile content", { skip: withoutBrowser }, () => {
  let visitor: Visitor;
  let leaf = "";
  let file = "";
  before(async () => {
    const path = join(makeScratch("web-hostile"), "lcm.db");
    const store = await openSqlite({ path, housekeeping: false });
    const settings = resolveSettings({ env: {}, config: { largeFileTokenThreshold: 500 } }).values;
    const lcm = createLcm({ store, clock: systemClock, settings });
    const { id } = await store.open({
      sessionId: evil,
      sessionKey: `agent:<b>main</b>:${evil}`,
      agentId: evil,
      folder: evil,
    });
    await store.setTitle(id, evil.replaceAll("\n", " "));
    const items = said.map(
      (message, at) => ({ kind: "message", key: `${evil}${at}`, at: systemClock.now(), message }) as const,
    );
    await lcm.ingest(id, items);
    await lcm.recordPrompt(await lcm.assemble(id), { model: evil });
    const folded = await store.fold(id, (await store.context(id)).slice(0, 2), summary(evil, { tokens: 8 }));
    leaf = folded.kind === "written" ? folded.summary : "";
    file = (await store.files(id))[0]?.id ?? "";
    await lcm.close();
    visitor = await visit(await startExplorer(portOver(path)));
  });

  const addresses = (): readonly (readonly [string, RegExp])[] => [
    ["#/", /window\.pwned/],
    ["#/timeline/1?focus=msg_1-1", /window\.pwned/],
    ["#/messages/1?at=2", /window\.pwned/],
    ...[1, 2, 3, 4, 5].map((seq) => [`#/message/msg_1-${seq}`, /About this message/] as const),
    [`#/summary/${leaf}`, /Made from 2 messages[^]*window\.pwned/],
    [`#/file/${file}`, /window\.pwned/],
    ["#/seen/1?prompt=1", /window\.pwned/],
    ["#/when/msg_1-1", /prompt/],
    ["#/search?q=pwned", /window\.pwned/],
    ["#/health/1", /checked/],
    ["#/cost/1", /prompts/],
    [`#/search?q=${encodeURIComponent(evil)}`, /Search/],
    [`#/message/${encodeURIComponent(evil)}`, /is not a message/],
    [
      `#/timeline/1?q=${encodeURIComponent(evil)}&axis=${encodeURIComponent(evil)}&focus=${encodeURIComponent(evil)}`,
      /messages/,
    ],
  ];

  it("is shown as text in every view, and neither runs nor loads anything", async () => {
    for (const [address, sees] of addresses()) {
      await visitor.go(address);
      await visitor.sees(sees);
      await visitor.page.evaluate(`for (const each of document.querySelectorAll("details")) each.open = true`);
      await visitor.until(`document.querySelector(".loading") === null`);
      assert.equal(await visitor.page.evaluate("typeof window.pwned"), "undefined", address);
      const made = await visitor.page.evaluate(
        `document.querySelectorAll("body script, iframe, object, embed, body link, body style, [onerror], [onload], [onclick], a[href^='javascript' i]").length`,
      );
      assert.equal(made, 0, address);
      const troubles = visitor.troubles().filter((line) => !/status of 4\d\d/.test(line));
      assert.deepEqual(troubles, [], address);
    }
  });

  it("opens links elsewhere only by a click, without telling where they were", async () => {
    await visitor.go("#/message/msg_1-1");
    await visitor.sees("About this message");
    const links = (await visitor.page.evaluate(
      `[...document.querySelectorAll("main a[href^=http]")].map((a) => a.rel + " " + a.referrerPolicy)`,
    )) as readonly string[];
    assert.ok(links.length > 0);
    for (const link of links) assert.match(link, /noopener noreferrer.* no-referrer$/);
  });

  it("cannot be run even by somebody who writes it into the page", async () => {
    await visitor.page.evaluate(`(() => {
      const script = document.createElement("script");
      try { script.textContent = "window.pwned = 'inline'"; } catch { /* Trusted types refuse it. */ }
      document.body.append(script);
      try { document.body.insertAdjacentHTML("beforeend", "<img src=x onerror=\\"window.pwned = 'html'\\">"); } catch { /* The same. */ }
    })()`);
    assert.equal(await visitor.page.evaluate("typeof window.pwned"), "undefined");
    visitor.troubles();
  });
});
