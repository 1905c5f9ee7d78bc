/**
 * Knows the agents that `lcm setup` connects: where each keeps its configuration, how to tell that it loads us, and what
 * adds us and takes us away. Where a host has commands for that, they do it.
 */

import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { isObject, type Json } from "../../core/base/json.ts";
import { addToList, readJsonc, removeFromList } from "./jsonc.ts";

export const agentNames = ["openclaw", "pi", "claude-code", "codex", "opencode"] as const;
export type AgentName = (typeof agentNames)[number];

/** Where agents can be told to keep their configuration. */
export const configVariables = [
  "CLAUDE_CONFIG_DIR",
  "CODEX_HOME",
  "OPENCLAW_CONFIG_PATH",
  "OPENCLAW_STATE_DIR",
  "PI_CODING_AGENT_DIR",
  "XDG_CONFIG_HOME",
] as const;

/** What setting up depends on. */
export interface Machine {
  readonly home: string;
  /** The folders of PATH. */
  readonly path: readonly string[];
  readonly variables: Readonly<Partial<Record<(typeof configVariables)[number], string>>>;
  /** The folder of this package. */
  readonly folder: string;
  readonly version: string;
}

type CommandLines = (folder: string) => readonly (readonly string[])[];

/** Lists the arguments of the agent's program, or edits its configuration. */
type Way =
  | { readonly how: "commands"; readonly add: CommandLines; readonly remove: CommandLines }
  | {
      readonly how: "edit";
      readonly add: (config: string | null, folder: string) => string;
      readonly remove: (config: string) => string;
    };

export interface Agent {
  readonly label: string;
  /** The name of its program. */
  readonly program: string;
  /** The file that holds its configuration; of several, the first that exists or else the last. */
  readonly configs: (machine: Machine) => readonly string[];
  /** The file of ours that it loads, and how: in its own process, or as programs. */
  readonly entry: string;
  readonly loads: "module" | "programs";
  /** Whether it copies our whole folder. */
  readonly copies: boolean;
  /** Its copy of this version, if it loads us from a copy. */
  readonly copy?: (machine: Machine) => string;
  /** What our programs keep with it, if it leaves that behind. */
  readonly data?: (machine: Machine) => string;
  /** The folder from which it loads us, or a name; null if it does not. Throws `invalid` if the text makes no sense. */
  readonly source: (config: string, path: string, folder: string) => string | null;
  /** What in its configuration keeps a part of us from working, and what to do about it; null if nothing does. */
  readonly obstacle?: (config: string) => string | null;
  /** Whether adding us again replaces what was added from another folder. */
  readonly replaces: boolean;
  readonly way: Way;
  /** What the user does next, and what else the first time. */
  readonly next: string;
  readonly first?: string;
}

const plugin = "lossless-claw@lossless";
/** What Claude Code calls all tools of our plugin's server in its rules. */
export const claudeTools = "mcp__plugin_lossless-claw_lcm";
const claudeFolder = ({ home, variables }: Machine): string => variables.CLAUDE_CONFIG_DIR ?? join(home, ".claude");
const codexFolder = ({ home, variables }: Machine): string => variables.CODEX_HOME ?? join(home, ".codex");

const openCodeEntry = "dist/hosts/opencode/plugin.js";

export const agents: Readonly<Record<AgentName, Agent>> = {
  openclaw: {
    label: "OpenClaw",
    program: "openclaw",
    configs: ({ home, variables }) => [
      variables.OPENCLAW_CONFIG_PATH ?? join(variables.OPENCLAW_STATE_DIR ?? join(home, ".openclaw"), "openclaw.json"),
    ],
    entry: "dist/hosts/openclaw/plugin.js",
    loads: "module",
    copies: false,
    // Its configuration is JSON5, which only OpenClaw reads in full.
    source: (config, _, folder) => {
      if (!/contextEngine["']?\s*:\s*["']lossless-claw["']/.test(config)) return null;
      return config.includes(JSON.stringify(folder)) ? folder : "";
    },
    replaces: true,
    way: {
      how: "commands",
      add: (folder) => [["plugins", "install", "-l", folder, "--force", "--accept-capabilities"]],
      remove: () => [["plugins", "uninstall", "lossless-claw", "--force"]],
    },
    next: "run `openclaw gateway restart`",
  },
  pi: {
    label: "Pi",
    program: "pi",
    configs: ({ home, variables }) => [
      join(variables.PI_CODING_AGENT_DIR ?? join(home, ".pi", "agent"), "settings.json"),
    ],
    entry: "dist/hosts/pi/extension.js",
    loads: "module",
    copies: false,
    source: (config, path, folder) => {
      const packages = fieldOf(readJsonc(config), "packages");
      const names = (Array.isArray(packages) ? packages : []).filter((item) => typeof item === "string");
      const places = names.map((name) => (name.startsWith("npm:") ? name : resolve(dirname(path), name)));
      return places.includes(folder) ? folder : (places.find(isOurPackage) ?? null);
    },
    replaces: false,
    way: { how: "commands", add: (folder) => [["install", folder]], remove: (folder) => [["remove", folder]] },
    next: "start a new session",
  },
  "claude-code": {
    label: "Claude Code",
    program: "claude",
    configs: (machine) => [join(claudeFolder(machine), "settings.json")],
    entry: ".claude-plugin/plugin.json",
    loads: "programs",
    copies: true,
    source: (config) => {
      const settings = readJsonc(config);
      if (fieldOf(settings, "enabledPlugins", plugin) !== true) return null;
      const path = fieldOf(settings, "extraKnownMarketplaces", "lossless", "source", "path");
      return typeof path === "string" ? path : "";
    },
    replaces: true,
    way: {
      how: "commands",
      add: (folder) => [
        ["plugin", "marketplace", "add", folder],
        ["plugin", "install", plugin],
      ],
      remove: () => [
        ["plugin", "uninstall", plugin],
        ["plugin", "marketplace", "remove", "lossless"],
      ],
    },
    next: "start a new session",
    first: `Claude asks before it uses each of our tools, and cannot ask in \`claude -p\`; to allow them, add "${claudeTools}" to permissions.allow in its settings`,
  },
  codex: {
    label: "Codex",
    program: "codex",
    configs: (machine) => [join(codexFolder(machine), "config.toml")],
    entry: ".codex-plugin/plugin.json",
    loads: "programs",
    copies: true,
    copy: (machine) => join(codexFolder(machine), "plugins", "cache", "lossless", "lossless-claw", machine.version),
    data: (machine) => join(codexFolder(machine), "plugins", "data", "lossless-claw-lossless"),
    source: (config) => (config.includes(`[plugins."${plugin}"]`) ? codexSource(config) : null),
    // A person's own server wins over a plugin's of the same name.
    obstacle: (config) =>
      /^\s*\[mcp_servers\.(?:lcm|"lcm")[\].]/m.test(config)
        ? "the MCP server `lcm` in this file hides ours, so the model gets none of our tools: rename yours, or remove it"
        : null,
    replaces: false,
    way: {
      how: "commands",
      add: (folder) => [
        ["plugin", "marketplace", "add", folder],
        ["plugin", "add", plugin],
      ],
      remove: () => [
        ["plugin", "remove", plugin],
        ["plugin", "marketplace", "remove", "lossless"],
      ],
    },
    next: "start a new session",
    first:
      "start `codex` once and trust our hooks when it asks; until then it does not run them, and nothing is stored",
  },
  opencode: {
    label: "OpenCode",
    program: "opencode",
    configs: ({ home, variables }) =>
      ["opencode.jsonc", "opencode.json"].map((name) =>
        join(variables.XDG_CONFIG_HOME ?? join(home, ".config"), "opencode", name),
      ),
    entry: openCodeEntry,
    loads: "module",
    copies: false,
    source: (config) => {
      const plugins = fieldOf(readJsonc(config), "plugin");
      const found = (Array.isArray(plugins) ? plugins : []).find(isOurPlugin);
      if (typeof found !== "string") return null;
      return found.startsWith("file:") ? fileURLToPath(found).slice(0, -openCodeEntry.length - 1) : found;
    },
    replaces: true,
    way: {
      how: "edit",
      add: (config, folder) => {
        const url = pathToFileURL(join(folder, openCodeEntry)).href;
        return addToList(config ?? `{\n  "$schema": "https://opencode.ai/config.json"\n}\n`, "plugin", url);
      },
      remove: (config) => removeFromList(config, "plugin", isOurPlugin),
    },
    next: "start a new session",
  },
};

/** A text of TOML is in single quotes as it is, or in double quotes like one of JSON. */
function codexSource(config: string): string {
  const ours = /^\[marketplaces\.lossless\][^[]*?^source\s*=\s*(?:'([^'\n]*)'|("(?:[^"\\\n]|\\.)*"))/m;
  const [, plain, quoted] = ours.exec(config) ?? [];
  return plain ?? textOf(quoted);
}

function textOf(quoted = '""'): string {
  try {
    return String(JSON.parse(quoted));
  } catch {
    return ""; // An escape that only TOML has: it is taken for another folder, and set up again.
  }
}

const isOurPackage = (place: string): boolean => /[/\\:]lossless-claw(?:@[^/\\]*)?$/.test(place);
const isOurPlugin = (item: Json): boolean =>
  typeof item === "string" &&
  (/^lossless-claw(?:@|$)/.test(item) || (item.startsWith("file:") && item.endsWith(`/${openCodeEntry}`)));

function fieldOf(value: Json | undefined, ...names: readonly string[]): Json | undefined {
  return names.reduce<Json | undefined>((inner, name) => (isObject(inner) ? inner[name] : undefined), value);
}
