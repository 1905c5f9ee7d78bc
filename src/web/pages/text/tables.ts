/** Finds out whether the result of a tool is a table: a list of JSON objects, or lines with the same separators. */

export interface Grid {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

const rowsMax = 200;
const columnsMax = 12;

export const gridOf = (text: string): Grid | null => gridOfJson(text) ?? gridOfSeparated(text);

function gridOfJson(text: string): Grid | null {
  if (!/^\s*\[\s*\{/.test(text)) return null;
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    // It only looks like JSON.
    return null;
  }
  const objects = Array.isArray(parsed) ? parsed.filter((each) => typeof each === "object" && each !== null) : [];
  if (objects.length < 2 || (Array.isArray(parsed) && objects.length !== parsed.length)) return null;
  const head = [...new Set(objects.flatMap((each) => Object.keys(each)))];
  if (head.length > columnsMax || objects.length > rowsMax) return null;
  return { head, rows: objects.map((each: Record<string, unknown>) => head.map((name) => cellText(each[name]))) };
}

const cellText = (value: unknown): string =>
  value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value);

/** Tabs, or commas in every line and equally many of them; the first line names the columns. */
function gridOfSeparated(text: string): Grid | null {
  const lines = text.trim().split(/\r?\n/);
  if (lines.length < 3 || lines.length > rowsMax) return null;
  for (const separator of ["\t", ","]) {
    const rows = lines.map((line) => line.split(separator).map((cell) => cell.trim()));
    const [head = []] = rows;
    const isEven = head.length >= 3 && head.length <= columnsMax && rows.every((row) => row.length === head.length);
    const isNamed = head.every((name) => /^[\p{L}_][\p{L}\d_ .-]{0,30}$/u.test(name));
    if (isEven && isNamed) return { head, rows: rows.slice(1) };
  }
  return null;
}
