/**
 * Whose program is at the other end of a connection on this machine. A secret can be seen by others, for example on a
 * command line; the owner of a connection, which the kernel tells, cannot be borrowed.
 */

import { readFile } from "node:fs/promises";
import { endianness } from "node:os";

/** A connection as the server sees it. */
export interface Connection {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
  readonly localPort?: number | undefined;
}

/** Whether it is another user's, as far as this system tells. Root may do everything anyway. */
export async function isForeign(connection: Connection): Promise<boolean> {
  const owner = await ownerOf(connection);
  return owner !== null && owner !== 0 && owner !== process.getuid?.();
}

/** Whoever has closed a connection is not known any more, and is not taken for anybody. */
export const nobody = -1;

/** Only Linux lists the owners of connections; null elsewhere. */
export async function ownerOf(connection: Connection): Promise<number | null> {
  let isListed = false;
  for (const table of ["/proc/net/tcp", "/proc/net/tcp6"]) {
    const text = await readFile(table, "utf8").catch(() => ""); // There is no such list here.
    const owner = ownerIn(text, connection);
    if (owner !== null) return owner;
    isListed ||= listsServer(text, connection);
  }
  return isListed ? nobody : null;
}

/** The kernel's table has a line for each end: its own address, the other's, the state, and later the user and the inode. */
export function ownerIn(
  table: string,
  { remoteAddress = "", remotePort = 0, localPort = 0 }: Connection,
): number | null {
  const ending = `${hexOf(remoteAddress)}:${hex(remotePort, 4)}`;
  for (const line of table.split("\n")) {
    const [, own = "", other = "", , , , , user, , inode] = line.trim().split(/\s+/);
    // A closed end has no file any more, and is listed as if it were root's.
    const isOpen = inode !== "0";
    if (isOpen && own.endsWith(ending) && other.endsWith(`:${hex(localPort, 4)}`)) return Number(user);
  }
  return null;
}

/** Whether our own port is in the table: then the connections to it would be, too. */
const listsServer = (table: string, { localPort = 0 }: Connection): boolean =>
  table.split("\n").some(
    (line) =>
      line
        .trim()
        .split(/\s+/)[1]
        ?.endsWith(`:${hex(localPort, 4)}`) ?? false,
  );

const hex = (value: number, digits: number): string => value.toString(16).toUpperCase().padStart(digits, "0");

/** An IPv4 address, in the order of bytes that the machine has. */
function hexOf(address: string): string {
  const bytes = address.split(".").map(Number);
  return (endianness() === "LE" ? bytes.toReversed() : bytes).map((byte) => hex(byte, 2)).join("");
}
