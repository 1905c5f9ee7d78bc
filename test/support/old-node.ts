/** Finds a Node that is too old for us, to test what we say there. */

import { spawnSync } from "node:child_process";
import { delimiter, join } from "node:path";

/** A Node that cannot run us: the machine's own if too old, otherwise this one with a faked version. */
export const oldNode = findOldNode() ?? [
  process.execPath,
  "--import",
  "data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'20.20.2'}})",
];

function findOldNode(): readonly string[] | undefined {
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter((folder) => !folder.includes("node_modules"));
  const nodes = folders.map((folder) => join(folder, "node"));
  const old = nodes.find((node) => {
    const version = /^v(\d+)/.exec(spawnSync(node, ["--version"], { encoding: "utf8" }).stdout ?? "")?.[1];
    return version !== undefined && Number(version) >= 14 && Number(version) < 24;
  });
  return old === undefined ? undefined : [old];
}
