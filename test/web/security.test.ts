/** Who the explorer answers, and what it never does: each promise as an attacker would try it. */

import assert from "node:assert/strict";
import { copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { createLcm } from "../../src/core/lcm.ts";
import { openSqlite, systemNow } from "../../src/store/sqlite/store.ts";
import { checkOrigin, isSame } from "../../src/web/guard.ts";
import { makeDeepConversation, type DeepConversation } from "../support/deep-conversation.ts";
import { makeScratch } from "../support/scratch.ts";
import { withExplorer, type Explorer } from "./ground.ts";

const folder = makeScratch("web-security");
const path = join(folder, "lcm.db");
let made: DeepConversation;
before(async () => {
  made = await makeDeepConversation(path);
});

const on = (work: (explorer: Explorer) => Promise<void>) => async () => {
  await withExplorer(path, {}, work);
};

const everyPath = ["/", "/api/conversations", "/api/session", "/api/events", "/assets/main-ABCDEFGH.js", "/nothing"];
/** Words that only the database has. */
const secretWords = /ferry|booking|Ines/;

describe("guarantee 41: only who has the link is answered", () => {
  it(
    "nothing but the key exchange is answered without the cookie",
    on(async ({ ask, port }) => {
      for (const path of everyPath) {
        const { status, text } = await ask({ path, headers: { host: `127.0.0.1:${port}` } });
        assert.equal(status, 401, path);
        assert.doesNotMatch(text, secretWords);
        assert.doesNotMatch(text, /main-ABCDEFGH/);
      }
    }),
  );

  it(
    "a wrong key or cookie is no better than none",
    on(async ({ ask, cookie, link }) => {
      const key = new URL(link).searchParams.get("key") ?? "";
      const [name = "", value = ""] = cookie.split("=");
      for (const wrong of ["", "x", key.slice(1), `${key}x`, value]) {
        const { status, headers } = await ask({ path: `/?key=${wrong}` });
        assert.deepEqual([status, headers["set-cookie"]], [401, undefined]);
      }
      for (const wrong of [`${name}=`, `${name}=${key}`, `${name}=${value.slice(1)}`, `other=${value}`, value]) {
        const { status } = await ask({ path: "/api/conversations", headers: { cookie: wrong } });
        assert.equal(status, 401, wrong);
      }
    }),
  );

  it(
    "the key is exchanged for a cookie that no script reads, and leaves the address",
    on(async ({ ask, link }) => {
      const { status, headers } = await ask({ path: new URL(link).pathname + new URL(link).search });
      assert.equal(status, 303);
      assert.equal(headers.location, "/");
      assert.match(
        headers["set-cookie"]?.[0] ?? "",
        /^lcm_[0-9a-f]{12}=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/,
      );
    }),
  );

  it("each server has a secret of its own", async () => {
    const seen = new Set<string>();
    for (let time = 0; time < 2; time++)
      await withExplorer(path, {}, async ({ link, cookie }) => {
        seen.add(new URL(link).searchParams.get("key") ?? "");
        seen.add(cookie);
      });
    assert.equal(seen.size, 4);
  });

  it(
    "a host name that was pointed at us is refused (DNS rebinding)",
    on(async ({ ask, cookie, port, link }) => {
      for (const host of ["evil.example", `evil.example:${port}`, "127.0.0.1.evil.example", "0.0.0.0", "[::2]"]) {
        for (const path of [...everyPath, new URL(link).pathname + new URL(link).search]) {
          const { status, headers, text } = await ask({ path, headers: { host, cookie } });
          assert.equal(status, 403, `${host} ${path}`);
          assert.equal(headers["set-cookie"], undefined);
          assert.doesNotMatch(text, secretWords);
        }
      }
    }),
  );

  it(
    "answers over a forwarded port, whose number is another one",
    on(async ({ ask, cookie }) => {
      const headers = { cookie, host: "localhost:8137", origin: "http://localhost:8137" };
      assert.equal((await ask({ path: "/api/session", headers })).status, 200);
    }),
  );

  it(
    "requests of other pages are refused, whatever they bring",
    on(async ({ ask, cookie, port }) => {
      const own = { cookie, host: `127.0.0.1:${port}` };
      const foreign: readonly Readonly<Record<string, string>>[] = [
        { origin: "https://evil.example" },
        { origin: "null" },
        { origin: `https://127.0.0.1:${port}` },
        { origin: `http://localhost:${port}` },
        { origin: "http://127.0.0.1:1" },
        { "sec-fetch-site": "cross-site" },
        { "sec-fetch-site": "same-site" },
        { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" },
        { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe" },
      ];
      for (const more of foreign) {
        const { status, text } = await ask({ path: "/api/conversations", headers: { ...own, ...more } });
        assert.equal(status, 403, JSON.stringify(more));
        assert.doesNotMatch(text, secretWords);
      }
      const post = { method: "POST", path: "/api/health", body: "{}" };
      for (const more of [{ origin: "https://evil.example" }, { "sec-fetch-site": "none" }])
        assert.equal(
          (await ask({ ...post, headers: { ...own, "content-type": "application/json", ...more } })).status,
          403,
        );
    }),
  );

  it("a form of another page cannot send what is taken for a change", async () => {
    await withExplorer(path, { write: true }, async ({ ask, cookie, port }) => {
      for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
        const headers = { cookie, host: `127.0.0.1:${port}`, "content-type": type };
        const body = JSON.stringify({ kind: "fix", conversation: made.deep });
        const { status, text } = await ask({ method: "POST", path: "/api/plan", headers, body });
        assert.equal(status, 400, type);
        assert.match(text, /application\/json/);
      }
    });
  });

  it("every refusal is decided before anything is read", () => {
    const headersOf = (given: Readonly<Record<string, string>>) => (name: string) => given[name];
    const check =
      (given: Readonly<Record<string, string>>, path = "/") =>
      () =>
        checkOrigin({ method: "GET", path, header: headersOf(given) });
    assert.doesNotThrow(check({ host: "[::1]:80" }));
    assert.throws(check({}), /host name/);
    // A link may be clicked anywhere, but opens our page, and never the API.
    const clicked = {
      host: "localhost",
      "sec-fetch-site": "cross-site",
      "sec-fetch-mode": "navigate",
      "sec-fetch-dest": "document",
    };
    assert.doesNotThrow(check(clicked));
    assert.throws(check(clicked, "/api/conversations"), /other pages/);
    assert.deepEqual(
      [isSame("a", "a"), isSame("a", "b"), isSame("", "a"), isSame(null, "")],
      [true, false, false, false],
    );
  });
});

describe("guarantee 41: the explorer runs and loads nothing that a conversation contains", () => {
  it(
    "every answer has the headers that see to it",
    on(async ({ ask, cookie, link }) => {
      const paths = [
        ...everyPath.filter((path) => path !== "/api/events"),
        "/api/message?id=0",
        new URL(link).pathname + new URL(link).search,
      ];
      const asked = [
        ...paths.map((path) => ({ path, headers: { cookie } })),
        ...paths.filter((path) => !path.includes("key=")).map((path) => ({ path })),
        { path: "/", headers: { host: "evil.example" } },
        { path: "/?key=wrong" },
        { path: "/", method: "DELETE", headers: { cookie } },
      ];
      for (const each of asked) {
        const { headers } = await ask(each);
        const policy = String(headers["content-security-policy"]);
        assert.match(
          policy,
          /^default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'/,
        );
        assert.match(policy, /frame-ancestors 'none'/);
        assert.doesNotMatch(policy, /unsafe|\*|https?:/);
        assert.equal(headers["x-content-type-options"], "nosniff", each.path);
        assert.equal(headers["referrer-policy"], "no-referrer");
        assert.equal(headers["x-frame-options"], "DENY");
        assert.equal(headers["access-control-allow-origin"], undefined);
        assert.match(headers["cache-control"] ?? "", /no-store|private/);
      }
    }),
  );

  it(
    "no script, style or address of elsewhere is in the document",
    on(async ({ ask, cookie }) => {
      const { text } = await ask({ path: "/", headers: { cookie } });
      assert.doesNotMatch(text, /https?:|\/\/|<script>|<style|style=|\son\w+=/);
      const sources = [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, source]) => source);
      assert.deepEqual(sources, ["/assets/main-HGFEDCBA.css", "data:,", "/assets/main-ABCDEFGH.js"]);
    }),
  );

  it("markup in messages, summaries, names and files is only ever JSON", async () => {
    const own = join(folder, "markup.db");
    const markup = `<script>alert(1)</script><img src=x onerror=alert(2)>`;
    const store = await openSqlite({ path: own, housekeeping: false });
    const lcm = createLcm({ store, clock: { now: systemNow } });
    const { id } = await store.open({ sessionId: markup, sessionKey: markup, agentId: markup });
    await store.setTitle(id, markup);
    const file = await store.saveFile({
      conversation: id,
      name: `${markup}.html`,
      mimeType: "text/html",
      encoding: "utf8",
      exploration: markup,
      content: markup,
    });
    const svg = Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(3)"/>`).toString("base64");
    const picture = await store.saveFile({
      conversation: id,
      name: "a.svg",
      mimeType: "image/svg+xml",
      encoding: "base64",
      exploration: null,
      content: svg,
    });
    const at = systemNow();
    const raw = {
      role: "user",
      content: [
        { type: "text", text: markup },
        { type: "image", data: svg, mimeType: "image/svg+xml" },
      ],
    };
    await lcm.ingest(id, [{ kind: "message", key: markup, at, message: raw }]);
    const [message] = await store.messages({ conversation: id });
    await store.fold(id, await store.context(id), {
      text: markup,
      tokens: 1,
      level: "normal",
      model: markup,
      previousContext: null,
      fileIds: [],
    });
    const [summary] = await store.summaries({ conversation: id });
    await lcm.close();
    await withExplorer(own, {}, async ({ ask, cookie }) => {
      const paths = [
        `message?id=${message?.id}`,
        `summary?id=${summary?.id}`,
        `sources?summary=${summary?.id}`,
        `file?id=${file.id}`,
        `timeline?conversation=${id}`,
        `promptNow?conversation=${id}`,
        `search?pattern=${encodeURIComponent("alert")}`,
        `find?id=${encodeURIComponent(markup)}`,
        encodeURIComponent(markup),
        "conversations",
        "status",
      ];
      for (const path of paths) {
        const { headers, text, status } = await ask({ path: `/api/${path}`, headers: { cookie } });
        assert.match(headers["content-type"] ?? "", /^application\/json/, path);
        assert.equal(typeof JSON.parse(text), "object", `${path}: ${status}`);
      }
      // A picture in which scripts could run is not served as one.
      const { status, headers } = await ask({ path: `/api/picture?id=${picture.id}`, headers: { cookie } });
      assert.deepEqual([status, headers["content-type"]?.split(";")[0]], [400, "application/json"]);
      const { text } = await ask({ path: `/api/message?id=${message?.id}`, headers: { cookie } });
      assert.doesNotMatch(text, /data:image\/svg/);
    });
  });

  it(
    "assets are found by name alone, never by a path",
    on(async ({ ask, cookie }) => {
      const known = await ask({ path: "/assets/main-ABCDEFGH.js", headers: { cookie } });
      assert.deepEqual([known.status, known.text], [200, "/* main-ABCDEFGH.js */"]);
      const climbing = [
        "../package.json",
        "..%2f..%2fpackage.json",
        "%2e%2e/package.json",
        "..\\package.json",
        "/etc/passwd",
        "%00",
        "main-ABCDEFGH.js%00.css",
        "__proto__",
        "constructor",
        "manifest.json",
      ];
      for (const name of climbing) {
        const { status, text } = await ask({ path: `/assets/${name}`, headers: { cookie } });
        assert.ok(status === 404 || status === 400, `${name}: ${status}`);
        assert.doesNotMatch(text, /"lossless-claw"|root:/);
      }
      for (const name of ["__proto__", "constructor", "toString"])
        assert.equal((await ask({ path: `/api/${name}`, headers: { cookie } })).status, 404);
    }),
  );
});

describe("guarantee 41: requests are bounded", () => {
  it(
    "in method, size, and form; each refusal says why",
    on(async ({ ask, cookie, port, refusedRead }) => {
      const own = { cookie, host: `127.0.0.1:${port}`, origin: `http://127.0.0.1:${port}` };
      for (const method of ["PUT", "DELETE", "PATCH", "OPTIONS"]) {
        const { status } = await ask({ method, path: "/api/conversations", headers: own });
        assert.equal(status, 400, method);
      }
      const json = { ...own, "content-type": "application/json" };
      const post = async (body: string) => await ask({ method: "POST", path: "/api/plan", headers: json, body });
      assert.equal((await post(`"${"x".repeat(70_000)}"`)).status, 413);
      assert.equal((await post("{")).status, 400);
      assert.equal((await post("[".repeat(5_000) + "]".repeat(5_000))).status, 400);
      assert.equal((await post("[]")).status, 400);
      assert.equal((await ask({ path: `/api/find?id=${"x".repeat(20_000)}`, headers: own })).status, 431);
      const long = await refusedRead("find", { id: "x".repeat(11_000) });
      assert.deepEqual([long.status, long.code, long.message], [400, "invalid", "id is too long"]);
    }),
  );

  it(
    "nothing that was asked, and no secret, gets into what the server tells its terminal",
    on(async ({ ask, cookie, link, bugs, refusedRead }) => {
      await ask({ path: `/?key=${new URL(link).searchParams.get("key")}x` });
      await ask({ path: "/api/conversations?find=password", headers: { cookie: `${cookie}x` } });
      await refusedRead("find", { id: "password" });
      assert.deepEqual(bugs, []);
    }),
  );
});

describe("guarantee 41: without --write nothing can be changed", () => {
  it("every change is refused, and the file stays as it is", async () => {
    const own = join(makeScratch("web-read-only"), "lcm.db");
    copyFileSync(path, own);
    const bytes = readFileSync(own);
    await withExplorer(own, {}, async ({ write, refusedWrite, read }) => {
      assert.equal((await read("session", {})).readOnly, "it was opened with --read-only");
      const { deep: conversation, truncated: summary, young } = made;
      const item = (await read("timeline", { conversation })).summaries.find(({ above }) => above === null)?.id;
      assert.ok(item !== undefined);
      const requests = [
        { kind: "compact", conversation, isForced: true, isLocal: true },
        { kind: "dissolve", conversation, summary: item, purge: false },
        { kind: "transplant", source: conversation, target: young },
        { kind: "fix", conversation },
      ] as const;
      for (const request of requests) {
        const plan = await write("plan", request);
        assert.ok(plan.lines.length > 0 || plan.refusal !== null, request.kind);
        const { status, code, message } = await refusedWrite("apply", { plan: plan.id });
        assert.deepEqual([status, code], [403, "denied"], request.kind);
        assert.match(message, /nothing can be changed/);
      }
      const plan = await write("rewritePlan", { conversation, select: { summary } });
      const drafted = await refusedWrite("draft", { plan: plan.id, summary, isFresh: false });
      assert.deepEqual([drafted.status, drafted.code], [403, "denied"]);
      assert.equal((await refusedWrite("rewriteApply", { draft: "x" })).status, 404);
    });
    assert.ok(readFileSync(own).equals(bytes), "the file has the same bytes");
  });
});
