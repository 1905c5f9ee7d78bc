/** The last body of each session, as it was read and as it was sent: of the next one, only what differs from it is read. */

import type { Request } from "./request.ts";
import { commonLength } from "./scan.ts";

export interface LastBody {
  readonly request: Request;
  readonly sent: Buffer;
}

export interface LastBodies {
  /** `hint` is whose body it probably is; a wrong one only costs time. */
  get(hint: string): LastBody | null;
  keep(hint: string, body: LastBody): void;
}

/** Of all sessions together. The one that was used last is kept, however large. */
const bytesMax = 300_000_000;
/** What is kept of an element beside its bytes: its places, and the hash of what it says. */
const bytesPerElement = 120;

export function createLastBodies(): LastBodies {
  const bodies = new Map<string, LastBody>();
  return {
    get: (hint) => bodies.get(hint) ?? null,
    keep(hint, body) {
      bodies.delete(hint);
      bodies.set(hint, body);
      let bytes = 0;
      for (const [key, each] of [...bodies].toReversed()) {
        bytes += bytesOf(each);
        if (bytes > bytesMax && key !== hint) bodies.delete(key);
      }
    },
  };
}

function bytesOf({ request: { scanned }, sent }: LastBody): number {
  const own = scanned.bytes.length + scanned.count * bytesPerElement;
  return sent === scanned.bytes ? own : own + sent.length;
}

/** How much of what is sent is what was sent before. */
export function keptBytes({ scanned }: Request, sent: Buffer, last: LastBody | null): number {
  if (last === null) return 0;
  const isUnchanged = sent === scanned.bytes && last.sent === last.request.scanned.bytes;
  return isUnchanged ? scanned.keptBytes : commonLength(last.sent, sent);
}
