/**
 * Visits the explorer like a person: a real browser, the real server, real files. Whatever goes wrong on the way, an error
 * on the console or a request to elsewhere, is remembered.
 */

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Browser, Page } from "puppeteer-core";
import { systemClock } from "../../src/index.ts";
import type { Port } from "../../src/operator/port.ts";
import { packageVersion } from "../../src/package.ts";
import { serveExplorer, type Served } from "../../src/web/server.ts";
import type { Assets } from "../../src/web/assets.ts";
import { pagesInMemory } from "../../scripts/pages.ts";
import { makeShared } from "./shared.ts";

/** How long to wait for something to appear; only a failing test waits this long. */
const patienceMs = Number(process.env["PATIENCE"] ?? 120_000);

const living = new Set<() => Promise<void>>();
if (process.env["NODE_TEST_CONTEXT"] !== undefined)
  after(async () => {
    for (const end of [...living].reverse()) await end().catch(() => undefined);
  });

let assets: Promise<Assets> | null = null;

/** Serves what a port offers, until the tests end. */
export async function startExplorer(port: Port, clock = systemClock): Promise<Served> {
  const about = { version: packageVersion(), zone: port.zone, clock };
  const served = await serveExplorer({
    port,
    assets: await (assets ??= pagesInMemory()),
    about,
    listenOn: 0,
    onBug: (words) => process.stderr.write(`the server reports a bug: ${words}\n`),
  });
  living.add(async () => await served.close());
  return served;
}

let browser: Promise<Browser> | null = null;

/** One browser for all tests of a file. */
export async function openBrowser(): Promise<Browser> {
  return await (browser ??= launch());
}

async function launch(): Promise<Browser> {
  const { default: chromium } = await import("@sparticuz/chromium");
  const { default: puppeteer } = await import("puppeteer-core");
  // Unpacked once, although several files may want it at the same time.
  await makeShared("browser", async (folder) => writeFileSync(join(folder, "path"), await chromium.executablePath()));
  const launched = await puppeteer.launch({
    executablePath: await chromium.executablePath(),
    headless: "shell",
    args: ["--no-sandbox", "--no-zygote", "--disable-gpu", "--disable-dev-shm-usage", "--font-render-hinting=none"],
  });
  living.add(async () => await launched.close());
  return launched;
}

export interface Visitor {
  readonly page: Page;
  /** Opens the view with this address, the part behind `#`. */
  go(address: string): Promise<void>;
  address(): Promise<string>;
  text(): Promise<string>;
  /** Waits until the page shows this; on failure shows the page. */
  sees(words: string | RegExp): Promise<void>;
  misses(words: string | RegExp): Promise<void>;
  /** Waits until an expression is true in the page. */
  until(expression: string): Promise<void>;
  /** Clicks what a screen reader would call this. */
  click(name: string, role?: "button" | "link" | "checkbox"): Promise<void>;
  /** Types into the field with this name. */
  fill(name: string, words: string): Promise<void>;
  choose(name: string, value: string): Promise<void>;
  press(...keys: readonly string[]): Promise<void>;
  /** What is serious for people with disabilities; by one rule, or all. */
  barriers(rule?: string): Promise<readonly string[]>;
  /** Errors, and requests to elsewhere, since the last call. */
  troubles(): readonly string[];
}

export interface Size {
  readonly width: number;
  readonly height: number;
  readonly isPhone?: boolean;
}

const desk: Size = { width: 1280, height: 860 };

/** A page of its own, with the cookie of the link. */
export async function visit({ link, port }: Served, size: Size = desk): Promise<Visitor> {
  const page = await (await openBrowser()).newPage();
  const { width, height, isPhone = false } = size;
  await page.setViewport({ width, height, isMobile: isPhone, hasTouch: isPhone });
  let troubles: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warn") troubles.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => troubles.push(`error: ${String(error)}`));
  page.on("dialog", (dialog) => {
    troubles.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`http://127.0.0.1:${port}/`) && !url.startsWith("data:")) troubles.push(`request: ${url}`);
  });
  await page.goto(link, { waitUntil: "load" });
  const visitor = createVisitor(page, () => {
    const found = troubles;
    troubles = [];
    return found;
  });
  await visitor.sees(/lossless-claw \d/);
  return visitor;
}

function createVisitor(page: Page, troubles: () => readonly string[]): Visitor {
  const text = async (): Promise<string> => String(await page.evaluate("document.body.innerText"));
  const until = async (isSo: () => Promise<boolean>, what: string): Promise<void> => {
    const end = performance.now() + patienceMs;
    while (!(await isSo())) {
      const late = performance.now() > end;
      assert.ok(!late, late ? `${what} at ${page.url()}:\n${await text()}\n${troubles().join("\n")}` : "");
      await sleep(25);
    }
  };
  const has = async (words: string | RegExp): Promise<boolean> => {
    const shown = await text();
    return typeof words === "string" ? shown.includes(words) : words.test(shown);
  };
  const named = (name: string, role?: string): string =>
    `::-p-aria([name=${JSON.stringify(name)}]${role === undefined ? "" : `[role="${role}"]`})`;
  const find = async (selector: string) => {
    let found = await page.$(selector);
    await until(async () => (found ??= await page.$(selector)) !== null, `nothing is called ${selector}`);
    assert.ok(found);
    return found;
  };
  /** What is found may be drawn anew just then. */
  const clickOn = async (selector: string, left = 3): Promise<void> => {
    try {
      await (await find(selector)).click();
    } catch (error) {
      if (left === 0) throw error;
      await clickOn(selector, left - 1);
    }
  };
  return {
    page,
    go: async (address) => {
      await page.evaluate(`location.hash = ${JSON.stringify(address)}`);
    },
    address: async () => String(await page.evaluate("location.hash")),
    text,
    sees: async (words) => await until(async () => await has(words), `the page never showed ${String(words)}`),
    misses: async (words) => await until(async () => !(await has(words)), `the page still shows ${String(words)}`),
    until: async (expression) =>
      await until(async () => (await page.evaluate(`Boolean(${expression})`)) === true, `never: ${expression}`),
    click: async (name, role = "button") => await clickOn(named(name, role)),
    async fill(name, words) {
      const field = await find(named(name));
      await field.click({ count: 3 });
      await field.press("Backspace");
      await field.type(words);
    },
    async choose(name, value) {
      await (await find(named(name))).select(value);
    },
    async press(...keys) {
      for (const key of keys) await page.keyboard.press(key as Parameters<Page["keyboard"]["press"]>[0]);
    },
    barriers: async (rule) => await findBarriers(page, rule),
    troubles,
  };
}

interface Barrier {
  readonly id: string;
  readonly impact: string | null;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

async function findBarriers(page: Page, rule?: string): Promise<readonly string[]> {
  const { default: axe } = await import("axe-core");
  await page.evaluate(`typeof axe === "undefined" && void ${axe.source}`);
  const options = { resultTypes: ["violations"], ...(rule === undefined ? {} : { runOnly: [rule] }) };
  const { violations } = (await page.evaluate(`axe.run(document, ${JSON.stringify(options)})`)) as {
    readonly violations: readonly Barrier[];
  };
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html}\n${failureSummary}`));
}
