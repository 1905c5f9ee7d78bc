/** Runs the store contract on PostgreSQL. */

import { after } from "node:test";
import { postgres } from "./store-contract/postgres.ts";
import { testStore } from "./store-contract/suite.ts";
import { usePostgres } from "./support/shared-postgres.ts";

const server = await usePostgres();
after(async () => await subject.close());

const subject = postgres(() => server.url);
testStore("PostgreSQL", subject);
