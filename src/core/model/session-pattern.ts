/** Patterns that sessions are named by, in settings and by operators. */

/** `*` stands for any characters, also none; everything else for itself. */
export const matchesPattern = (pattern: string, name: string): boolean =>
  new RegExp(
    `^${pattern
      .split("*")
      .map((text) => RegExp.escape(text))
      .join(".*")}$`,
    "s",
  ).test(name);
