/** A side process for tests: does what it is asked, however badly. Arguments: the protocol that it claims to speak. */

import { setTimeout as sleep } from "node:timers/promises";
import { LcmError } from "../../src/core/base/errors.ts";
import { Peer } from "../../src/hosts/shared/json-rpc.ts";

const [protocol = "1"] = process.argv.slice(2);
if (protocol === "mute") setInterval(() => undefined, 1_000);
if (protocol === "broken") {
  process.stderr.write("there is no such database\n");
  process.exit(6);
}

const peer: Peer = new Peer({
  input: process.stdin,
  output: process.stdout,
  isPatient: true,
  methods: {
    hello: async () =>
      protocol === "mute" ? await new Promise(() => undefined) : { protocol: Number(protocol), pid: process.pid },
    echo: async (params) => await Promise.resolve(params),
    fail: async () => await Promise.reject(new LcmError("conflict", "it is locked", { hint: "wait a little" })),
    break: async () => await Promise.reject(new TypeError("x is not a function")),
    async hang(_params, { signal }) {
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      return "never";
    },
    async deaf({ ms }) {
      await sleep(Number(ms));
      return "at last";
    },
    async work(_params, { progress }) {
      for (const step of ["one", "two"]) progress(step);
      return await Promise.resolve("done");
    },
    ask: async (params) => ({ answer: await peer.request("complete", params) }),
    async die() {
      process.kill(process.pid, "SIGKILL");
      return await new Promise(() => undefined);
    },
  },
});
await peer.ended;
process.exit(0);
