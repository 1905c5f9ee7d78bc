import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { queryStopWords } from "../../core/base/stop-words.ts";
import { formsOf, languageOf } from "./inflect.ts";
import { parseQuery } from "./query.ts";
import { createReader } from "./rank.ts";

const finds = (pattern: string, text: string): boolean => {
  const { words } = parseQuery(pattern);
  return createReader(words)(text).counts.some((count) => count > 0);
};

describe("a query in German, French or Spanish", () => {
  it("finds other forms of its words", () => {
    assert.ok(finds("Wo sind die Rechnungen?", "die Rechnung liegt bei"));
    assert.ok(finds("Welche Häuser sind frei?", "das Haus am See"));
    assert.ok(finds("Où sont les factures réservées ?", "la facture est payée"));
    assert.ok(finds("¿Dónde están las reservas?", "la reserva es para dos"));
  });

  it("does not search for its function words", () => {
    const words = (pattern: string) => parseQuery(pattern).words.map(({ text }) => text);
    assert.deepEqual(words("Welche Häuser sind noch frei?"), ["Häuser", "noch", "frei"]);
    assert.deepEqual(words("Quelle est la couleur de la porte ?"), ["couleur", "porte"]);
  });

  it("differs from an English one by its letters and function words", () => {
    for (const pattern of [
      "where is the invoice",
      "die casting of the part",
      "the data on la carte",
      "error in module",
    ])
      assert.equal(languageOf(pattern, queryStopWords), null, pattern);
    assert.ok(languageOf("wie ist der Stand", queryStopWords) !== null);
  });

  it("leaves short words and identifiers as they are", () => {
    const german = languageOf("wie ist der Stand", queryStopWords) ?? assert.fail();
    assert.deepEqual(formsOf("tor", german), ["tor"]);
    assert.deepEqual(formsOf("v2_en", german), ["v2_en"]);
    assert.ok(!finds("Wo sind die Rechnungen?", "der Rechen im Garten"));
  });
});
