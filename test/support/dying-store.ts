/** Wraps a real store that stops answering at a chosen call, to simulate a process that dies at work. */

import type { Store } from "../../src/core/model/store.ts";

/** Dies at its nth call: before the call, or just after it. */
export function dyingStore(store: Store, call: number, when: "before" | "after"): Store {
  let calls = 0;
  const handler: ProxyHandler<object> = {
    get(target, name) {
      const method: unknown = Reflect.get(target, name);
      if (name === "databaseFile" && typeof method === "object" && method !== null) return new Proxy(method, handler);
      if (typeof method !== "function" || name === "close") return method;
      return async (...args: unknown[]): Promise<unknown> => {
        const mine = ++calls;
        if (mine > call || (mine === call && when === "before")) throw new Error("the process is gone");
        const result: unknown = await Reflect.apply(method, target, args);
        if (mine === call) throw new Error("the process is gone");
        return result;
      };
    },
  };
  return new Proxy(store, handler) as Store;
}
