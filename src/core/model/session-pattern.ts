/** Session keys: patterns such as `agent:*:cron:*` that match them, and the agent in `agent:main:telegram`. */

/** `*` matches any characters, or none. Taking the first place of each piece is enough, so no match takes long. */
export function matchesPattern(pattern: string, name: string): boolean {
  const [first = "", ...pieces] = pattern.split("*");
  const last = pieces.pop();
  if (last === undefined) return name === first;
  if (!name.startsWith(first)) return false;
  let at = first.length;
  for (const piece of pieces) {
    const found = name.indexOf(piece, at);
    if (found === -1) return false;
    at = found + piece.length;
  }
  return name.length - last.length >= at && name.endsWith(last);
}

export const agentInKey = (sessionKey: string | null): string | null =>
  /^agent:([^:]+)/.exec(sessionKey ?? "")?.[1] ?? null;

/** Whether a program, not a person, writes the user's messages of this session. */
export const isAutomated = (sessionKey: string | null): boolean =>
  /^agent:[^:]+:(?:.*:)?(?:subagent|cron|hook|acp)(?::|$)/.test(sessionKey ?? "");
