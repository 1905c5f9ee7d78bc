/** The import graph, drawn: which folder of src uses which, and in what order the files of each can be read. */

import { globSync, readFileSync } from "node:fs";
import { posix } from "node:path";

/** What each source file imports, by paths from src; tests and what only tests use are left out. */
type Graph = ReadonlyMap<string, readonly string[]>;

export function importsMarkdown(root: string): string {
  const graph = readGraph(root);
  const folders = [...new Set([...graph.keys()].map(folderOf))].filter((folder) => folder !== "");
  return `# Who imports whom

A folder uses only those that its arrows lead to; [a test](../test/architecture.test.ts) holds them to it. The roots, which
choose the store and the model for a program, are left out: they may use everything. No imports lead in a circle.

\`\`\`mermaid
graph TD
${arrows(graph)
  .map(([from, to]) => `  ${from} --> ${to}`)
  .join("\n")}
\`\`\`

Within a folder, a file needs only files of the rows above its own. So a folder reads from the top down, and whoever
wants the whole before the parts begins at the bottom.

${folders.map((folder) => `## ${folder}\n\n${layersMarkdown(graph, folder)}`).join("\n\n")}
`;
}

/** They put the parts together, and are no part of any. */
const roots = /^(cli\/(main|context|open|tui)|hosts\/openclaw\/(plugin|cli)|index|package)\.ts$/;

function readGraph(root: string): Graph {
  const paths = globSync("**/*.ts", { cwd: posix.join(root.replaceAll("\\", "/"), "src") })
    .map((path) => path.replaceAll("\\", "/"))
    .filter((path) => !/\.test\.ts$|\.d\.ts$/.test(path))
    .toSorted();
  return new Map(
    paths.map((path) => {
      const source = readFileSync(posix.join(root, "src", path), "utf8");
      const named = [...source.matchAll(/(?:from|import\() ?"(\.[^"]+)"|new URL\("(\.[^"]+\.ts)"/g)];
      const imported = named.map(([, module, file = ""]) => posix.join(posix.dirname(path), module ?? file));
      return [path, [...new Set(imported)].filter((target) => paths.includes(target))];
    }),
  );
}

const folderOf = (path: string): string => (path.includes("/") ? (path.split("/")[0] ?? "") : "");

function arrows(graph: Graph): readonly (readonly [string, string])[] {
  const drawn = [...graph]
    .filter(([path]) => !roots.test(path))
    .flatMap(([path, imported]) => imported.map((target) => `${folderOf(path)} ${folderOf(target)}`));
  return [...new Set(drawn)]
    .toSorted()
    .map((arrow): [string, string] => {
      const [from = "", to = ""] = arrow.split(" ");
      return [from, to];
    })
    .filter(([from, to]) => from !== to && from !== "");
}

function layersMarkdown(graph: Graph, folder: string): string {
  const layers: string[][] = [];
  const depths = new Map<string, number>();
  const depthOf = (path: string): number => {
    const known = depths.get(path);
    if (known !== undefined) return known;
    // A type may lead back; the first visit counts.
    depths.set(path, 0);
    const own = (graph.get(path) ?? []).filter((target) => folderOf(target) === folder);
    const depth = own.length === 0 ? 0 : 1 + Math.max(...own.map(depthOf));
    depths.set(path, depth);
    return depth;
  };
  for (const path of graph.keys()) if (folderOf(path) === folder) (layers[depthOf(path)] ??= []).push(path);
  const name = (path: string): string => `[${posix.relative(folder, path).replace(/\.ts$/, "")}](../src/${path})`;
  return layers.map((paths, at) => `${at + 1}. ${paths.map(name).join(" · ")}`).join("\n");
}
