/** Serves the explorer in this process, and opens it in a browser. */

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { packageFolder, packageVersion } from "../package.ts";
import type { Assets } from "../web/assets.ts";
import type { Exploring } from "./commands/_exploring.ts";
import type { CommandContext, TuiRequest } from "./commands/_session.ts";
import { createPort } from "./port.ts";

interface Opening extends TuiRequest, Exploring {
  readonly context: CommandContext;
  readonly signal: AbortSignal;
}

export async function serveWeb(opening: Opening): Promise<void> {
  const { context, listenOn, opens, started, note, signal } = opening;
  const { serveExplorer } = await import("../web/server.ts");
  const assets = await readAssets();
  const port = createPort({ ...opening, whyReadOnly: opening.readOnly ? "it was started without --write" : null });
  try {
    // Fails now, and not in the browser, if there is no database.
    await port.reading();
    const about = { version: packageVersion(), zone: context.zone, clock: context.clock };
    const onBug = (words: string): void => note(`a request failed: ${words}`);
    const served = await serveExplorer({ port, assets, about, listenOn: listenOn ?? 0, onBug });
    started(served);
    if (opens && hasDisplay(context)) openInBrowser(served.link, note);
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    await served.close();
  } finally {
    await port.close();
    await opening.database.close();
  }
}

/** The built pages; in a checkout they are built again at each start. */
async function readAssets(): Promise<Assets> {
  const { builtAssets } = await import("../web/assets.ts");
  const folder = packageFolder();
  const builder = join(folder, "scripts", "pages.ts");
  const isSource = import.meta.dirname === join(folder, "src", "cli");
  if (!isSource || !existsSync(builder)) return builtAssets(join(folder, "dist", "web"));
  const { pagesInMemory }: { pagesInMemory: () => Promise<Assets> } = await import(pathToFileURL(builder).href);
  return await pagesInMemory();
}

// ── The browser ──────────────────────────────────────────────────────────────────────────────────────────────────────

/** Over ssh, a browser would open on the other machine. */
function hasDisplay({ stdout }: CommandContext): boolean {
  const { env, platform } = process;
  if (!stdout.isTerminal || env["SSH_CONNECTION"] !== undefined) return false;
  return platform === "darwin" || platform === "win32" || isSet(env["DISPLAY"]) || isSet(env["WAYLAND_DISPLAY"]);
}

const isSet = (variable: string | undefined): boolean => variable !== undefined && variable !== "";

/** The secret is in the arguments of the opener only until it is exchanged; other users cannot use it without reaching us. */
function openInBrowser(link: string, note: (line: string) => void): void {
  const [program, ...words] = openers[process.platform] ?? ["xdg-open"];
  const child = spawn(program ?? "xdg-open", [...words, link], { stdio: "ignore", detached: true });
  child.on("error", () => note("no browser could be opened; open the link yourself"));
  child.unref();
}

const openers: Partial<Record<NodeJS.Platform, readonly string[]>> = {
  darwin: ["open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
};
