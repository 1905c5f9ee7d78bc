/** Stub: see the contract. */
import type { Tool } from "../tools/tool.ts";
import type { HostRuntime, HostTool, ToolContext } from "./host.ts";
import type { Runtime } from "./runtime.ts";

export interface ToolDeps {
  readonly runtime: () => Runtime;
  readonly host: () => HostRuntime;
}

export function createTool(tool: Tool, context: ToolContext, deps: ToolDeps): HostTool | null {
  if (tool.audience === "delegate") return null;
  return {
    name: tool.name,
    label: tool.label,
    description: tool.description,
    parameters: JSON.parse(JSON.stringify(tool.parameters)),
    catalogMode: "direct-only",
    async execute(_id, args, signal) {
      const lcm = await deps.runtime().open();
      const [active] = await lcm.store.conversations({ sessionKey: context.sessionKey ?? "", active: true, limit: 1 });
      const reader = {
        conversation: active?.id ?? null,
        policy: lcm.settings.scopePolicy,
        agentId: context.agentId ?? "main",
      };
      const { text, details } = await tool.run(args, { lcm, reader, ...(signal ? { signal } : {}) });
      return { content: [{ type: "text", text }], details };
    },
  };
}
