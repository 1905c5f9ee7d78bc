/** Reads an answer beside the client, as a stream of events or as a whole. What goes wrong here does not reach the client. */

import type { AnswerReader } from "./forward.ts";
import type { Headers } from "./identity.ts";
import { createEventReader, parsedObject, type Answer, type Wire } from "./wires/wire.ts";

const bytesMax = 64_000_000;

/** `finish` gets a complete answer. */
export function answerReader(wire: Wire, headers: Headers, finish: (answer: Answer) => void): AnswerReader {
  const isStream = String(headers["content-type"] ?? "").includes("event-stream");
  if (isStream) return streamReader(wire, finish);
  return textReader((text) => {
    const body = parsedObject(text);
    const answer = body === null ? null : wire.readAnswer(body);
    if (answer?.isComplete === true) finish(answer);
  });
}

export function textReader(read: (text: string) => void): AnswerReader {
  const pieces: Buffer[] = [];
  let length = 0;
  return {
    piece(bytes) {
      length += bytes.length;
      if (length <= bytesMax) pieces.push(bytes);
    },
    end(isWhole) {
      if (isWhole && length > 0 && length <= bytesMax) read(Buffer.concat(pieces).toString("utf8"));
    },
  };
}

function streamReader(wire: Wire, finish: (answer: Answer) => void): AnswerReader {
  const collector = wire.createCollector();
  const decoder = new TextDecoder();
  const read = createEventReader((data) => collector.event(data));
  let length = 0;
  return {
    piece(bytes) {
      length += bytes.length;
      if (length > bytesMax) throw new Error(`the answer has more than ${bytesMax} bytes`);
      read(decoder.decode(bytes, { stream: true }));
    },
    end(isWhole) {
      const answer = collector.answer();
      if (isWhole && answer.isComplete) finish(answer);
    },
  };
}

/** After the first error the rest is left unread: the next request has the answer. */
export function guardedReader(guarded: AnswerReader, note: (error: unknown) => void): AnswerReader {
  let reader: AnswerReader | null = guarded;
  const attempt = (work: (reader: AnswerReader) => void): void => {
    try {
      if (reader !== null) work(reader);
    } catch (error) {
      reader = null; // With all that it has kept.
      note(error);
    }
  };
  return {
    piece: (bytes) => attempt((each) => each.piece(bytes)),
    end: (isWhole) => attempt((each) => each.end(isWhole)),
  };
}
