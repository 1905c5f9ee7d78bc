/**
 * The words of scripts that databases say differently. Scripts are written once, in SQL that SQLite and PostgreSQL both
 * understand, and in these words. SQLite has each under another name, which replaces it when a statement is prepared;
 * PostgreSQL has functions of these names in its schema.
 *
 * | word | meaning |
 * |---|---|
 * | `numbers_in(list)`, `texts_in(list)` | the values of a JSON list as rows: `key`, `value` |
 * | `pairs_in(list) AS p` | a JSON list of pairs of numbers as rows: `p.one`, `p.other` |
 * | `objects_in(list)`, `objects_at(doc, path)`, `texts_at(doc, path)` | the same for objects, and inside a document |
 * | `json_word(doc, path)`, `json_number(doc, path)` | a value of a document; null if the document is not JSON |
 * | `is_same_json(value, text)` | whether both are the same document |
 * | `json_group_array(x)` | all values as a JSON list |
 * | `instr(text, part)` | whether a text contains another: a truth, not a place |
 * | `is_own_tool(name)` | whether one of our own tools has this name, with whatever prefix a host gives it |
 * | `is_garbled(text)` | whether it has control characters, or a lost character beside a digit |
 * | `may_match(text, like, literal)` | whether a text contains the literal in any case, or what LIKE finds at least as often |
 * | `greatest(a, b)`, `right(text, n)` | the larger value; the last characters |
 * | `hex8(number)` | eight hexadecimal digits |
 * | `source.table` | a table of a database that is merged |
 * | `file_number` of `large_files` | the order in which files were stored |
 * | `CROSS JOIN … ON`, `INDEXED BY` | hints for SQLite, which tries no other order or index |
 */

/** Control characters except tab, line feed and carriage return; and the replacement character next to a digit. */
const garbled = ["*[\u0001-\b\v\f\u000e-\u001f]*", "*[0-9]\ufffd*", "*\ufffd[0-9]*"];
const isGarbled = ["instr($1, char(0))", ...garbled.map((pattern) => `$1 GLOB '${pattern}'`)].join(" OR ");

const sqliteWords: readonly (readonly [RegExp, string])[] = [
  [/\b(?:(?:numbers|texts|objects)_(?:in|at)|pairs_in)\(/g, "json_each("],
  [/\b(\w+)\.one\b/g, "($1.value ->> 0)"],
  [/\b(\w+)\.other\b/g, "($1.value ->> 1)"],
  [/\bjson_word\((\w+), ('[^']*')\)/g, "CASE WHEN json_valid($1) THEN $1 ->> $2 END"],
  [/\bjson_number\(/g, "json_extract("],
  [/\bis_same_json\((.*?), \?\)/g, "$1 = json(?)"],
  [/\bis_own_tool\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)/g, "$1 GLOB '*lcm_[a-z]*'"],
  [/\bis_garbled\((\w+)\)/g, `(${isGarbled})`],
  [/\bmay_match\((\w+), \?, \?\)/g, "$1 LIKE ? ESCAPE '\\' AND ? IS NOT NULL"],
  [/\bgreatest\(/g, "max("],
  [/\bhex8\(/g, "printf('%08x', "],
  [/\bright\((\w+), (\d+)\)/g, "substr($1, -$2)"],
  [/\bfile_number\b/g, "rowid"],
];

/** A statement in the words of SQLite. */
export const inSqlite = (words: string): string =>
  sqliteWords.reduce((text, [word, meaning]) => text.replace(word, meaning), words);
