/** Runs simulated lives on a PostgreSQL server whose connections are killed and which loses its power. */

import { after, before, describe } from "node:test";
import { testLives } from "./simulation/lives.ts";
import { postgres } from "./simulation/postgres.ts";
import { startMachine, type PostgresMachine } from "./support/postgres-machine.ts";

let machine: PostgresMachine;
before(async () => {
  machine = await startMachine({ jit: "off", full_page_writes: "off", track_activity_query_size: "100" });
});
after(async () => await machine.stop());

describe("guarantee 37: a server keeps what a database file keeps, whatever happens", () => {
  testLives(
    postgres(() => machine),
    40,
    1,
  );
});
