/** Runs the engine of `lcm serve`: the settings, database, prompts and model of the command line, for one plugin. */

import { errorText } from "../core/base/errors.ts";
import type { Model } from "../core/model/store.ts";
import { createHostEngine, type HostEngine } from "../hosts/shared/engine.ts";
import { openRuntime } from "../hosts/shared/open-runtime.ts";
import { serveEngine, type Greeting, type ServeOptions } from "../hosts/shared/serve.ts";
import { boundMemory } from "./bound-memory.ts";
import type { CommandContext, HostService } from "./commands/_session.ts";

interface ServeHost extends HostService, Pick<ServeOptions, "version"> {
  readonly context: CommandContext;
  readonly stdin: ServeOptions["input"];
  readonly stdout: ServeOptions["output"];
  readonly signal: AbortSignal;
}

/** How long the process may outlive its client: a locked database would keep it. The client brings again what is lost. */
const endMs = 5_000;

export async function serveHost(service: ServeHost): Promise<void> {
  boundMemory();
  const { stdin: input, stdout: output, version, signal } = service;
  input.once("close", () => setTimeout(() => process.exit(0), endMs).unref());
  await serveEngine({
    input,
    output,
    version,
    signal,
    createEngine: async (greeting) => await open(service, greeting),
  });
}

async function open({ context, database, note }: ServeHost, { words, model }: Greeting): Promise<HostEngine> {
  const logger = { info: () => undefined, warn: note, error: note };
  const runtime = await openRuntime(process.env, logger, database.place);
  const summariser = model ?? (await configuredModel(context, note));
  return createHostEngine({ runtime, words, modelOf: () => summariser });
}

/** Only a model that was configured for summaries: OpenClaw's own would spend money that nobody here has agreed to. */
export async function configuredModel(context: CommandContext, note: (line: string) => void): Promise<Model | null> {
  const { values } = await context.settings();
  if (values.summaryModel === null && values.summaryProvider === null) return null;
  try {
    return (await (await context.summariser())?.create(values)) ?? null;
  } catch (error) {
    note(`no model is used: ${errorText(error)}`);
    return null;
  }
}
