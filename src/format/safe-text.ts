/** Neutralises control characters in stored text, so that it cannot move the cursor or change colours. */

const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

/** Shows control characters instead of sending them, including those that reverse the direction of the text around them. */
export const harmless = (text: string): string => text.replace(/\r\n/g, "\n").replace(controls, showControl);

/** The same for a line of output, whatever it contains, such as the name of a file: only our own colours pass. */
export const harmlessLine = (line: string, hasColours: boolean): string =>
  line
    .split(hasColours ? /(\u001b\[[\d;]*m)/ : /(?!)/)
    .map((part, at) => (at % 2 === 1 ? part : part.replace(controls, showControl)))
    .join("");

const showControl = (character: string): string => {
  const code = character.charCodeAt(0);
  return code < 0x20 ? String.fromCharCode(0x2400 + code) : code === 0x7f ? "␡" : "�";
};

/** The same on one line. */
export const oneLine = (text: string): string => harmless(text).replace(/\s+/g, " ").trim();

/** JSON with every character escaped that a terminal obeys; `JSON.stringify` escapes only some of them. */
export const jsonText = (value: unknown): string => `${escapedJson(JSON.stringify(value, null, 2))}\n`;

export const escapedJson = (json: string): string =>
  json.replace(
    /[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
