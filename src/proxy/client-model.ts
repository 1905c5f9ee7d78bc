/**
 * The agent's own model, to write summaries with if its user has agreed to that (the setting `proxyClientKey`). Only an
 * API key will do: the token of a subscription belongs to the agent. The key lives in memory, from the request that it came
 * with until a fold that waits for it is over, and goes to no other address than the request did. Pure.
 */

import type { JsonObject } from "../core/base/json.ts";
import type { Headers } from "./identity.ts";
import { textIn, type Wire } from "./wires/wire.ts";

export interface ClientModel {
  readonly api: Wire["name"];
  readonly provider: string;
  readonly model: string;
  readonly baseUrl: string;
  readonly key: string;
}

export interface SentBy {
  readonly wire: Wire;
  /** Where the request goes. */
  readonly url: URL;
  readonly headers: Headers;
  /** The body without its messages. */
  readonly rest: JsonObject;
}

const endings = { anthropic: "/messages", chat: "/chat/completions", responses: "/responses" } as const;

/** Null unless the request is sent with something that is known to be an API key. */
export function clientModelOf({ wire: { name: api }, url, headers, rest }: SentBy): ClientModel | null {
  const model = textIn(rest["model"]);
  const ending = endings[api];
  const bearer = /^Bearer (\S+)$/i.exec(textIn(headers["authorization"]))?.[1] ?? "";
  const key = api === "anthropic" ? textIn(headers["x-api-key"]) : bearer;
  if (model === "" || !apiKey.test(key) || !url.pathname.endsWith(ending)) return null;
  const provider = api === "anthropic" ? api : url.hostname === "api.openai.com" ? "openai" : url.hostname;
  return { api, provider, model, baseUrl: url.origin + url.pathname.slice(0, -ending.length), key };
}

/** As providers begin them. Tokens of Anthropic's subscriptions begin like its keys; others look different. */
const apiKey = /^(?:sk-(?!ant-o)|gsk_|xai-|AIza|nvapi-|pplx-)\S{3,}$/;
