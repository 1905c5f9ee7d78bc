/** What `lcm proxy` and `lcm run` ask of their context. */

import type { DatabasePlace } from "../../core/base/database-place.ts";
import type { ProxyReport } from "../../core/model/proxy-report.ts";

export interface ProxyVerbs {
  /** Serves agents as a proxy until a signal ends the program. */
  serveProxy(request: ProxyRequest): Promise<void>;
  /** What the proxies of this database do or have done, the oldest first. */
  proxyReports(path: string): Promise<readonly ProxyReport[]>;
  /** Runs a program through a proxy of its own. Returns its exit status. */
  runAgent(request: RunRequest): Promise<number>;
}

interface Served {
  readonly database: { readonly place: DatabasePlace; readonly path: string };
  readonly storeOnly: boolean;
  /** `name=url`. */
  readonly upstreams: readonly string[];
}

export interface ProxyRequest extends Served {
  /** Null for the one it had before. */
  readonly port: number | null;
  readonly print: (line: string) => void;
}

export interface RunRequest extends Served {
  readonly withMcp: boolean;
  readonly command: readonly string[];
}
