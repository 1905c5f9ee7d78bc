import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { describe, it } from "node:test";
import { isForeign, nobody, ownerIn, ownerOf } from "./peer.ts";

const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1E25 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1 0 100 0 0 10 0
   1: 0200007F:C350 0100007F:1E25 01 00000000:00000000 00:00000000 00000000  1001        0 12 1 0 100 0 0 10 0
   2: 0100007F:C350 0100007F:1E26 01 00000000:00000000 00:00000000 00000000  1002        0 13 1 0 100 0 0 10 0
   3: 0100007F:C350 0100007F:1E25 01 00000000:00000000 00:00000000 00000000  1003        0 14 1 0 100 0 0 10 0
   4: 0100007F:1E25 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 15 1 0 100 0 0 10 0
`;

describe("the owner of a connection", () => {
  const end = { remoteAddress: "127.0.0.1", remotePort: 0xc3_50, localPort: 0x1e_25 };

  it("is that of the client's end, with exactly its address and port", () => {
    assert.equal(ownerIn(table, end), 1_003);
    assert.equal(ownerIn(table, { ...end, remoteAddress: "127.0.0.2" }), 1_001);
    assert.equal(ownerIn(table, { ...end, localPort: 0x1e_26 }), 1_002);
    assert.equal(ownerIn(table, { ...end, remotePort: 1 }), null);
    assert.equal(ownerIn("", end), null);
  });

  it("is not root because the client has closed its end, which is then listed without a file", () => {
    const closed = table.replace("1003        0 14 1", "   0        0 0 1");
    assert.equal(ownerIn(closed, end), null);
    assert.equal(ownerIn(table.replace("1003        0 14 1", "   0        0 14 1"), end), 0);
  });

  it("is found in the table of sockets that speak IPv6, too", () => {
    const six = table.replaceAll("0100007F", "0000000000000000FFFF00000100007F");
    assert.equal(ownerIn(six, end), 1_003);
  });

  it(
    "is this user for a program of this user",
    { skip: process.platform !== "linux" && "only Linux tells" },
    async () => {
      const server = createServer().listen(0, "127.0.0.1");
      await once(server, "listening");
      const { port } = server.address() as AddressInfo;
      const client = connect(port, "127.0.0.1");
      const [socket] = (await once(server, "connection")) as [Socket];
      assert.equal(await ownerOf(socket), process.getuid?.());
      assert.equal(await isForeign(socket), false);
      const seen = { remoteAddress: "127.0.0.1", remotePort: socket.remotePort, localPort: port };
      const closed = once(socket.resume(), "close");
      client.destroy();
      await closed;
      assert.equal(await ownerOf(seen), nobody, "who has left is not taken for anybody");
      assert.equal(await isForeign(seen), true);
      server.close();
    },
  );
});
