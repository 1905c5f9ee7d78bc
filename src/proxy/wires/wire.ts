/** What the proxy needs to know about a provider's format: one object per format, chosen by the path of a request. */

import type { Json, JsonObject } from "../../core/base/json.ts";
import type { HostMessage } from "../../core/messages/codec.ts";

export interface Wire {
  readonly name: "anthropic" | "chat" | "responses";
  /** The field of a request with the conversation. */
  readonly field: "messages" | "input";
  /** Instructions and surroundings that stay in front, whatever is folded. */
  isPinned(element: JsonObject): boolean;
  /** As the store keeps it; null for an element that is not understood. Then the request is not changed. */
  toMessage(element: JsonObject): HostMessage | null;
  /** The elements that say what a message from the store says. */
  fromMessage(message: HostMessage): readonly JsonObject[];
  /** A user's message with our texts; `first` are blocks of the host's own that go in front. */
  ours(texts: readonly string[], first: readonly Json[], isMarked: boolean): JsonObject;
  readAnswer(body: JsonObject): Answer;
  /** Reads an answer that comes as events. */
  createCollector(): Collector;
}

export interface Collector {
  event(data: JsonObject): void;
  answer(): Answer;
}

/** What the model answered, as elements of the next request. */
export interface Answer {
  readonly elements: readonly JsonObject[];
  readonly isComplete: boolean;
  readonly usage: Usage | null;
}

/** Input tokens as the provider counts them, and how many of them it read from its cache. */
export interface Usage {
  readonly input: number;
  readonly cached: number;
}

export const numberIn = (value: Json | undefined): number => (typeof value === "number" ? value : 0);
export const textIn = (value: Json | undefined): string => (typeof value === "string" ? value : "");
export const objectIn = (value: Json | undefined): JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
export const listIn = (value: Json | undefined): readonly Json[] => (Array.isArray(value) ? value : []);

/** The place that a piece of an answer has in a list. A list with an endless gap would take endless time to read. */
export function placeIn(value: Json | undefined): number {
  const place = numberIn(value);
  if (!Number.isInteger(place) || place < 0 || place >= placesMax)
    throw new Error("an answer has a place out of range");
  return place;
}

const placesMax = 100_000;

/** The events of a stream that comes in pieces, each cut anywhere. */
export function createEventReader(read: (data: JsonObject) => void): (piece: string) => void {
  let rest: string[] = [];
  return (piece) => {
    rest.push(piece);
    if (!/[\r\n]/.test(piece)) return; // A long line is put together once, when it has ended.
    const lines = rest.join("").split(/\r\n|\n|\r(?!$)/);
    rest = [lines.pop() ?? ""];
    for (const line of lines) {
      // Every provider writes the data of an event in one line.
      if (!line.startsWith("data:")) continue;
      const data = parsedObject(line.slice("data:".length));
      if (data !== null) read(data);
    }
  };
}

export function parsedObject(text: string): JsonObject | null {
  try {
    const value = JSON.parse(text) as Json;
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : null;
  } catch {
    return null; // `[DONE]`, or something that is not ours to judge.
  }
}

/** Results as bare text where a format takes nothing else. */
export function textOfResult(content: Json): string {
  if (typeof content === "string") return content;
  return listIn(content)
    .map((block) => (typeof block === "string" ? block : textIn(objectIn(block)["text"])))
    .filter((text) => text !== "")
    .join("\n");
}
