/**
 * Measures the explorer's server: `npm run bench:web [-- 1000 100000]`. For each size in messages: what the first view of
 * its timeline takes, how long details take while zooming in, and the memory of the serving process. The server is the
 * command itself, in a process of its own.
 */

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { makeLongDatabase } from "../test/support/long-conversation.ts";
import { spread } from "./measure.ts";

const sizes = process.argv.slice(2).map(Number);
const lcm = fileURLToPath(new URL("../bin/lcm.js", import.meta.url));
const zooms = 40;

for (const size of sizes.length === 0 ? [1_000, 100_000] : sizes) {
  const folder = mkdtempSync(join(tmpdir(), "lcm-web-"));
  try {
    const path = join(folder, "lcm.db");
    await makeLongDatabase(path, size);
    console.log(JSON.stringify(await measure(path, size)));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measure(path: string, size: number) {
  const child = spawn(process.execPath, [lcm, "web", "--db", path, "--json"], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    const link = await linkOf(child.stdout);
    const opened = await fetch(link, { redirect: "manual" });
    const cookie = opened.headers.get("set-cookie")?.split(";")[0] ?? "";
    const get = async (name: string) => {
      const [start, before] = [performance.now(), cpuMs(child.pid ?? 0)];
      const text = await (await fetch(new URL(`/api/${name}`, link), { headers: { cookie } })).text();
      const cpu = cpuMs(child.pid ?? 0) - before;
      return { ms: performance.now() - start, cpu, bytes: Buffer.byteLength(text) };
    };
    const list = await get("conversations");
    const first = await get("timeline?conversation=1&cells=400");
    const again = await get("timeline?conversation=1&cells=400");
    const details: Awaited<ReturnType<typeof get>>[] = [];
    for (let zoom = 0; zoom < zooms; zoom++) {
      const width = Math.max(50, Math.round(size / 1.3 ** zoom));
      const from = 1 + Math.floor(((zoom * 7_919) % 1_000) * ((size - width) / 1_000));
      details.push(await get(`timeline?conversation=1&cells=400&from=${from}&to=${from + width}`));
    }
    const search = await get("search?pattern=crane&conversation=1");
    return {
      messages: size,
      listMs: list.ms,
      firstViewMs: first.ms,
      firstViewCpuMs: first.cpu,
      firstViewBytes: first.bytes,
      secondViewMs: again.ms,
      secondViewCpuMs: again.cpu,
      detailMs: spread(details.map(({ ms }) => ms)),
      detailCpuMsMean: details.reduce((sum, { cpu }) => sum + cpu, 0) / details.length,
      detailBytes: spread(details.map(({ bytes }) => bytes)),
      searchMs: search.ms,
      residentMb: residentMb(child.pid ?? 0),
    };
  } finally {
    child.kill();
  }
}

async function linkOf(output: NodeJS.ReadableStream): Promise<string> {
  let text = "";
  for await (const piece of output) {
    text += String(piece);
    const [link] = /http:[^"]+/.exec(text) ?? [];
    if (link !== undefined) return link;
  }
  throw new Error("lcm web ended");
}

/** Of all threads, in steps of 10 ms; 0 where the system does not tell. */
function cpuMs(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
    return 10 * (Number(fields[11]) + Number(fields[12]));
  } catch {
    return 0;
  }
}

/** Null where the system does not tell. */
function residentMb(pid: number): number | null {
  try {
    const [, kilobytes] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return kilobytes === undefined ? null : Math.round(Number(kilobytes) / 1024);
  } catch {
    return null;
  }
}
