/** An agent behind the proxy in a soak: what it has said on its current branch, and whether the store has all of it. */

import assert from "node:assert/strict";
import { errorText } from "../../../src/core/base/errors.ts";
import { restoreMessage } from "../../../src/core/ingest/large-content.ts";
import type { Lcm } from "../../../src/core/lcm.ts";
import { comparable, isTelling, saidIn } from "../../../src/core/messages/said.ts";
import type { ConversationId, Message } from "../../../src/core/model/types.ts";
import { flattened } from "../../support/lossless.ts";
import { saidBy, wires } from "../../support/proxy-ground.ts";
import type { Random } from "../../support/random.ts";
import { ScriptedAgent, type AgentAnswer } from "../../support/scripted-agent.ts";
import type { WireName } from "../../support/strict-provider.ts";
import type { Answer, Reply } from "../model-server.ts";
import { missing } from "../proxy-scenarios.ts";
import { withStore } from "../stored.ts";
import { byDesign } from "./neighbour.ts";
import { turnMark } from "./prompts.ts";

type Json = ReturnType<typeof JSON.parse>;

/** A request, and what came of it. */
export interface Sent {
  /** Null if there was no response, or only half of one. */
  readonly answer: AgentAnswer | null;
  /** Why it is not an answer; null if it is one. */
  readonly why: string | null;
  /** What the model replied meanwhile. */
  readonly replies: readonly Reply[];
  readonly hasGivenUp: boolean;
}

export class Client {
  readonly name: string;
  readonly agent: ScriptedAgent;
  readonly random: Random;
  turn = 0;
  /** Pieces that it took back before they were stored. */
  takenBack = 0;
  /** What the model has replied to the current request. */
  readonly replies: Reply[] = [];
  /** All messages of the current branch, whatever the agent has compacted. */
  #line: Json[] = [];
  /** What the model said without being heard: the proxy may have stored it. */
  readonly #unheard: Answer[] = [];
  #sentAtMs = 0;

  constructor(name: string, wire: WireName, base: string, random: Random) {
    this.name = name;
    this.random = random;
    this.agent = new ScriptedAgent({ base: () => base, wire, sessionId: `soak-${name}` });
  }

  /** The end of what it sends, to see what went wrong. */
  outline(): string {
    return this.agent.history
      .slice(-12)
      .map((element) => `  ${JSON.stringify(element).slice(0, 160)}`)
      .join("\n");
  }

  /** How long the current request has taken so far. */
  reached(atMs: number): number {
    return atMs - this.#sentAtMs;
  }

  prompt(text: string): void {
    this.#add(this.agent.user(`${turnMark(this.name, ++this.turn)} ${text}`));
  }

  #add(element: Json): void {
    this.agent.add(element);
    this.#line.push(element);
  }

  async send(patienceMs: number): Promise<Sent> {
    this.replies.length = 0;
    this.#sentAtMs = performance.now();
    const signal = AbortSignal.timeout(patienceMs);
    try {
      const answer = await this.agent.send(this.agent.history, "turn", signal);
      const why = answer.status === 200 ? null : `${answer.status} ${answer.text}`;
      return { answer, why, replies: [...this.replies], hasGivenUp: false };
    } catch (error) {
      const why = errorText(error instanceof Error ? (error.cause ?? error) : error);
      return { answer: null, why, replies: [...this.replies], hasGivenUp: signal.aborted };
    }
  }

  /** Adds an answer, and the results of its calls; whether there are any. An empty one is not kept. */
  take(answer: AgentAnswer | null): boolean {
    const results = this.agent.resultsFor(answer?.elements ?? []);
    if (answer === null || (answer.text.trim() === "" && results.length === 0)) return false;
    for (const element of [...answer.elements, ...results]) this.#add(element);
    return results.length > 0;
  }

  /** A request without an answer. What is too long for the model loses its oldest part, as with any agent. */
  async leave({ answer, replies }: Sent, url: string): Promise<void> {
    for (const reply of replies)
      if (typeof reply !== "string" && (reply.kind === "answer" || reply.kind === "drip"))
        this.#unheard.push(reply.kind === "drip" ? reply.answer : reply);
    const from = this.agent.prompts().at(-3);
    if (answer?.status === 400 && from !== undefined && this.agent.history.length > 12 && (await this.isStored(url)))
      this.agent.dropFront(from);
  }

  /** To before one of the last prompts, as a person does. */
  rewind(): void {
    const { agent } = this;
    const isOwn = (at: number): boolean => at > 0 && this.#line.includes(agent.history[at]);
    const places = agent.prompts().filter(isOwn).slice(-3);
    if (places.length === 0) return;
    const at = this.random.pick(places);
    this.#line = this.#line.slice(0, this.#line.indexOf(agent.history[at]));
    agent.rewind(at);
  }

  async compact(): Promise<void> {
    if (this.agent.history.length > 6) await this.agent.compact(this.random.pick([1, 2, 3]));
  }

  /** A proxy has no transcript to read later: what an agent sends no more before it is stored, it cannot store. */
  async isStored(url: string): Promise<boolean> {
    const read = withStore({ database: url }, async (lcm) => await this.#stored(lcm, await this.#ids(lcm)));
    const stored = await read.catch(() => []); // The server is away.
    return missing(stored, this.#saidOnLine()).length === 0;
  }

  #saidOnLine(): readonly string[] {
    return this.#line.flatMap((element) => piecesIn(wires[this.agent.options.wire].toMessage(element) ?? {}));
  }

  async #ids(lcm: Lcm): Promise<readonly ConversationId[]> {
    const sessionId = this.agent.options.sessionId ?? "";
    const conversations = await lcm.store.conversations({ sessionId, includeHidden: true });
    return conversations.map(({ id }) => id).toSorted((a, b) => a - b);
  }

  async #stored(lcm: Lcm, ids: readonly ConversationId[]): Promise<readonly string[]> {
    return await this.#pieces(
      lcm,
      ids.map(async (id) => await lcm.store.messages({ conversation: id })),
    );
  }

  /** Asserts that the store has what is on the branch, once and in order, and nothing that nobody said. */
  async assertStored(url: string): Promise<void> {
    await withStore({ database: url }, async (lcm) => {
      const ids = await this.#ids(lcm);
      const [stored, line] = [await this.#stored(lcm, ids), this.#saidOnLine()];
      const cut = (piece: string): string => piece.slice(0, 200);
      assert.deepEqual(missing(stored, line).map(cut), [], `${this.name}: not stored`);
      assert.deepEqual(this.#unsaid(stored).map(cut), [], `${this.name}: stored, but not said, or twice`);
      const shown = await this.#pieces(
        lcm,
        ids.map(async (id) => await flattened(lcm.store, id)),
      );
      const at = line.findIndex((piece, place) => piece !== shown[place]);
      assert.equal(cut(shown[at] ?? ""), cut(line[at] ?? ""), `${this.name}: the context differs at piece ${at + 1}`);
      assert.equal(shown.length, line.length, `${this.name}: the context represents other messages`);
      for (const id of ids) await assertSound(lcm, id);
      this.takenBack = missing(stored, saidBy(this.agent)).length;
    });
  }

  async #pieces(lcm: Lcm, lists: readonly Promise<readonly Message[]>[]): Promise<readonly string[]> {
    const messages = (await Promise.all(lists)).flat().filter(({ aside }) => aside !== "note");
    const whole = await Promise.all(messages.map(async (message) => await restoreMessage(lcm.store, message)));
    return whole.flatMap(piecesIn);
  }

  /** An answer that nobody heard may be stored, once. */
  #unsaid(stored: readonly string[]): readonly string[] {
    const texts = this.#unheard.flatMap(({ text = "" }) => piecesIn({ role: "assistant", content: text }));
    let calls = this.#unheard.reduce((sum, answer) => sum + (answer.calls?.length ?? 0), 0);
    return missing([...saidBy(this.agent), ...texts], stored).filter(
      (piece) => !(piece.startsWith("call\n") && calls-- > 0),
    );
  }
}

const piecesIn = (message: Parameters<typeof saidIn>[0]): readonly string[] =>
  saidIn(message).filter(isTelling).map(comparable);

async function assertSound(lcm: Lcm, id: ConversationId): Promise<void> {
  const findings = await lcm.inspect(id);
  const isFault = ({ severity, code }: (typeof findings)[number]): boolean =>
    severity !== "info" && !byDesign.some((known) => known === code);
  assert.deepEqual(findings.filter(isFault), []);
}
