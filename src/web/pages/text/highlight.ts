/**
 * Colours code well enough to read: comments, strings, numbers, keywords. One grammar serves all languages; what differs
 * is how comments begin.
 */

export type Shade = "plain" | "comment" | "string" | "number" | "keyword" | "name";

export interface Piece {
  readonly shade: Shade;
  readonly text: string;
}

const keywords = new Set(
  (
    "abstract and as async await begin break case catch class const continue def default defer del delete do elif else " +
    "end enum except export extends false final finally fn for foreach from func function go if impl import in " +
    "instanceof interface is lambda let loop match mod module mut namespace new nil none not null of or package pass " +
    "private protected pub public raise readonly return select self set static struct super switch then this throw " +
    "trait true try type typeof undefined until use val var void when where while with yield " +
    "alter by create desc distinct group having index insert join left limit on order table union values view " +
    "echo fi done esac local sudo"
  ).split(" "),
);

const hashComments =
  /^(?:|sh|bash|zsh|shell|console|py|python|rb|ruby|yaml|yml|toml|ini|r|perl|make|makefile|dockerfile|nix)$/;
const dashComments = /^(?:sql|lua|haskell|hs|ada|elm)$/;

/** Longer code is shown plain. */
const charactersMax = 100_000;

export function highlight(text: string, language: string): readonly Piece[] {
  if (text.length > charactersMax || /^(?:text|txt|plain|md|markdown|diff|log)$/.test(language))
    return [{ shade: "plain", text }];
  const comment = hashComments.test(language)
    ? "(?<![^\\s])#.*"
    : dashComments.test(language)
      ? "--.*"
      : "\\/\\/.*|\\/\\*[^]*?\\*\\/";
  const tokens = new RegExp(
    `(${comment})|("(?:[^"\\\\\\n]|\\\\.)*"|'(?:[^'\\\\\\n]|\\\\.)*'|\`(?:[^\`\\\\]|\\\\.)*\`)|(\\b\\d[\\d_.]*(?:e[+-]?\\d+)?\\b|\\b0x[\\da-f]+\\b)|([A-Za-z_$][\\w$]*)(\\s*\\()?`,
    "g",
  );
  const pieces: Piece[] = [];
  let done = 0;
  const add = (shade: Shade, piece: string): void => {
    const last = pieces.at(-1);
    if (piece === "") return;
    if (last?.shade === shade) pieces[pieces.length - 1] = { shade, text: last.text + piece };
    else pieces.push({ shade, text: piece });
  };
  for (const match of text.matchAll(tokens)) {
    const { index } = match;
    const [whole, remark, quoted, number, word, call = ""] = match;
    add("plain", text.slice(done, index));
    if (remark !== undefined) add("comment", remark);
    else if (quoted !== undefined) add("string", quoted);
    else if (number !== undefined) add("number", number);
    else if (word !== undefined) {
      // In SQL, capitals do not matter.
      const known = language === "sql" ? word.toLowerCase() : word;
      add(keywords.has(known) ? "keyword" : call === "" ? "plain" : "name", word);
      add("plain", call);
    }
    done = index + whole.length;
  }
  add("plain", text.slice(done));
  return pieces;
}
