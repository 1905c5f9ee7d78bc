/**
 * What every store must do, as one suite in the words of the port: a new backend adds its opening here and nothing
 * else. After every write of every test the whole database is inspected and holds no fewer rows than before.
 */

import { describe } from "node:test";
import { testAppend } from "./contract/append.ts";
import { testArchive } from "./contract/archive.ts";
import { testBranches } from "./contract/branches.ts";
import { testContent } from "./contract/content.ts";
import { testConversations } from "./contract/conversations.ts";
import { testDrafts } from "./contract/drafts.ts";
import { testFold } from "./contract/fold.ts";
import { testForget } from "./contract/forget.ts";
import type { StoreUnderTest } from "./contract/ground.ts";
import { testKeeping } from "./contract/keeping.ts";
import { testLedger } from "./contract/ledger.ts";
import { testManifest } from "./contract/manifest.ts";
import { testMend } from "./contract/mend.ts";
import { testMoved } from "./contract/moved.ts";
import { testOnce } from "./contract/once.ts";
import { testRemove } from "./contract/remove.ts";
import { testSearch } from "./contract/search.ts";
import { testFileSearch } from "./contract/search-files.ts";
import { testSpending } from "./contract/spending.ts";
import { testTransplant } from "./contract/transplant.ts";
import { testUndo } from "./contract/undo.ts";
import { testUndoForgotten } from "./contract/undo-forgotten.ts";
import { testUndoLives } from "./contract/undo-lives.ts";
import { testUndoObstacles } from "./contract/undo-obstacles.ts";

export function testStore(name: string, open: StoreUnderTest["open"], more: Omit<StoreUnderTest, "open">): void {
  const subject: StoreUnderTest = { open, ...more };
  describe(name, () => {
    testConversations(subject);
    testAppend(subject);
    testBranches(subject);
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
    testMend(subject);
    testMoved(subject);
    testLedger(subject);
    testSpending(subject);
    testSearch(subject);
    testFileSearch(subject);
    testKeeping(subject);
    testArchive(subject);
    testRemove(subject);
  });
}
