/** Session keys: patterns such as `agent:*:cron:*` that match them, and the agent in `agent:main:telegram`. */

/** `*` matches any characters, or none. */
export const matchesPattern = (pattern: string, name: string): boolean =>
  new RegExp(
    `^${pattern
      .split("*")
      .map((text) => RegExp.escape(text))
      .join(".*")}$`,
    "s",
  ).test(name);

export const agentInKey = (sessionKey: string | null): string | null =>
  /^agent:([^:]+)/.exec(sessionKey ?? "")?.[1] ?? null;
