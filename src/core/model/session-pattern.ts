/** Matches session keys against patterns such as `agent:*:cron:*`. */

/** `*` matches any characters, or none. */
export const matchesPattern = (pattern: string, name: string): boolean =>
  new RegExp(
    `^${pattern
      .split("*")
      .map((text) => RegExp.escape(text))
      .join(".*")}$`,
    "s",
  ).test(name);
