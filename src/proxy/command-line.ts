/** How programs are pointed at the proxy: by variables that their SDKs read, and by options of those that need them. Pure. */

import { posix, win32 } from "node:path";

export interface PointedAt {
  /** The base URL of an upstream, at the proxy. */
  readonly urlOf: (upstream: string) => string;
  /** The words that start our MCP server; null to add none. */
  readonly mcp: readonly string[] | null;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface PlannedCommand {
  readonly words: readonly string[];
  /** Besides the variables that there are. */
  readonly env: Readonly<Record<string, string>>;
}

export function commandFor(command: readonly string[], to: PointedAt): PlannedCommand {
  const [file = "", ...args] = command;
  const name = win32.basename(posix.basename(file)).replace(/\.(?:exe|cmd)$/i, "");
  const openai = to.urlOf("openai");
  const env = {
    ANTHROPIC_BASE_URL: to.urlOf("anthropic"),
    OPENAI_BASE_URL: openai,
    OPENAI_API_BASE: openai,
    ...pastProxies(to.env),
    ...(name === "opencode" ? openCodeEnv(to) : {}),
  };
  if (name === "codex") return { words: [file, ...codexOptions(to), ...args], env };
  if (name === "claude") return { words: [file, ...args, ...claudeOptions(args, to)], env };
  return { words: command, env };
}

/** Without this, requests to us would go through a proxy of the network, keys and all, and not encrypted. */
export function pastProxies(env: PointedAt["env"]): Readonly<Record<string, string>> {
  const hosts = [env["no_proxy"] || env["NO_PROXY"] || [], "127.0.0.1", "localhost"].flat().join(",");
  return { NO_PROXY: hosts, no_proxy: hosts };
}

/** Its options take TOML; a JSON text or list is one. */
function codexOptions({ urlOf, mcp }: PointedAt): readonly string[] {
  const url = ["-c", `openai_base_url=${JSON.stringify(urlOf("openai"))}`];
  if (mcp === null) return url;
  const [server, ...args] = mcp;
  const about = [`command=${JSON.stringify(server)}`, `args=${JSON.stringify(args)}`];
  return [...url, ...about.flatMap((each) => ["-c", `mcp_servers.lossless-claw.${each}`])];
}

/** At the end, because the option takes all words that follow it. Its subcommands do not know the option. */
function claudeOptions(args: readonly string[], { mcp }: PointedAt): readonly string[] {
  const isSubcommand = /^[a-z][a-z-]*$/.test(args[0] ?? "");
  if (mcp === null || isSubcommand || args.includes("--")) return [];
  const [command, ...rest] = mcp;
  return ["--mcp-config", JSON.stringify({ mcpServers: { "lossless-claw": { command, args: rest } } })];
}

/** It merges this into the config that it finds; one that somebody else passes so stays. */
function openCodeEnv({ urlOf, mcp, env }: PointedAt): Readonly<Record<string, string>> {
  if (env["OPENCODE_CONFIG_CONTENT"] !== undefined) return {};
  const config = {
    provider: {
      anthropic: { options: { baseURL: `${urlOf("anthropic")}/v1` } },
      openai: { options: { baseURL: urlOf("openai") } },
    },
    ...(mcp === null ? {} : { mcp: { "lossless-claw": { type: "local", command: mcp } } }),
  };
  return { OPENCODE_CONFIG_CONTENT: JSON.stringify(config) };
}
