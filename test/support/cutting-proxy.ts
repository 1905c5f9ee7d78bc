/** A TCP proxy before a PostgreSQL server that can cut a connection in the middle of a commit. */

import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/** Whether the server still gets the COMMIT, and whether the cut waits for the server's answer to it. */
export type Cut = "before the server gets it" | "after the server has answered" | "at once";

export interface CuttingProxy {
  readonly port: number;
  /** Cuts the connection of the next COMMIT. */
  cutNext(cut: Cut): void;
  /** Refuses connections, and ends those there are. */
  setDown(isDown: boolean): void;
  /** How many commits were cut. */
  readonly cuts: () => number;
  close(): Promise<void>;
}

const commit = Buffer.from("COMMIT\0");
const committed = Buffer.from("COMMIT\0"); // The server's answer names the command, too.

export async function startCuttingProxy(serverPort: number): Promise<CuttingProxy> {
  let next: Cut | null = null;
  let isDown = false;
  let cuts = 0;
  const open = new Set<Socket>();
  const serve = (client: Socket): void => {
    if (isDown) return void client.destroy();
    const server = connect(serverPort, "127.0.0.1");
    let isWithheld = false;
    const end = (): void => {
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      open.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        open.delete(socket);
        end();
      });
    }
    client.on("data", (bytes: Buffer) => {
      if (next === null || !bytes.includes(commit)) return void server.write(bytes);
      const cut = next;
      next = null;
      cuts += 1;
      if (cut === "before the server gets it") return end();
      isWithheld = true;
      server.write(bytes, () => {
        if (cut === "at once") end();
      });
    });
    server.on("data", (bytes: Buffer) => {
      if (!isWithheld) client.write(bytes);
      else if (bytes.includes(committed)) end();
    });
  };
  const proxy = createServer(serve).listen(0, "127.0.0.1");
  await once(proxy, "listening");
  return {
    port: (proxy.address() as AddressInfo).port,
    cutNext: (cut) => void (next = cut),
    setDown(to) {
      isDown = to;
      if (to) for (const socket of open) socket.destroy();
    },
    cuts: () => cuts,
    async close() {
      for (const socket of open) socket.destroy();
      proxy.close();
      await once(proxy, "close");
    },
  };
}
