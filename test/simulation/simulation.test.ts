/** Runs simulated lives on database files. */

import { describe } from "node:test";
import { testLives } from "./lives.ts";
import { sqlite } from "./sqlite.ts";

describe("guarantees 1 to 5, 12, 13, 17: whatever happens, the context represents what the host sent", () => {
  testLives(sqlite, 150, 5);
});
