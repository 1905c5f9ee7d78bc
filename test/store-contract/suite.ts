/**
 * Lists what every store must do, in terms of the port: a new backend adds how it opens, and nothing else. After every
 * write of every test the whole database is inspected and has no fewer rows than before.
 */

import { describe } from "node:test";
import { testAppend } from "./append.ts";
import { testArchive } from "./archive.ts";
import { testBranches } from "./branches.ts";
import { testContent } from "./content.ts";
import { testConversations } from "./conversations.ts";
import { testDrafts } from "./drafts.ts";
import { testFold } from "./fold.ts";
import { testForget } from "./forget.ts";
import type { StoreUnderTest } from "./ground.ts";
import { testHeard } from "./heard.ts";
import { testKeeping } from "./keeping.ts";
import { testLedger } from "./ledger.ts";
import { testMapAnswers } from "./map-answers.ts";
import { testManifest } from "./manifest.ts";
import { testFix } from "./fix.ts";
import { testMoved } from "./moved.ts";
import { testOnce } from "./once.ts";
import { testOutlines } from "./outlines.ts";
import { testPins } from "./pins.ts";
import { testPrompts } from "./prompts.ts";
import { testRemove } from "./remove.ts";
import { testSearch } from "./search.ts";
import { testSearchWords } from "./search-words.ts";
import { testFileSearch } from "./search-files.ts";
import { testSpending } from "./spending.ts";
import { testTransplant } from "./transplant.ts";
import { testUndo } from "./undo.ts";
import { testUndoForgotten } from "./undo-forgotten.ts";
import { testUndoLives } from "./undo-lives.ts";
import { testUndoObstacles } from "./undo-obstacles.ts";
import { testVectors } from "./vectors.ts";

export function testStore(name: string, subject: StoreUnderTest): void {
  describe(name, () => {
    testConversations(subject);
    testAppend(subject);
    testBranches(subject);
    testHeard(subject);
    testContent(subject);
    testFold(subject);
    testManifest(subject);
    testOnce(subject);
    testTransplant(subject);
    testUndo(subject);
    testUndoObstacles(subject);
    testUndoForgotten(subject);
    testUndoLives(subject);
    testForget(subject);
    testDrafts(subject);
    testMapAnswers(subject);
    testFix(subject);
    testMoved(subject);
    testLedger(subject);
    testSpending(subject);
    testSearch(subject);
    testSearchWords(subject);
    testFileSearch(subject);
    testKeeping(subject);
    testOutlines(subject);
    testPins(subject);
    testPrompts(subject);
    testArchive(subject);
    testRemove(subject);
    testVectors(subject);
  });
}
