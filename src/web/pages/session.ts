/** What every view knows of the session: whether it may write, which model, and how far the clocks are apart. */

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { timestampToMs, type Timestamp } from "../../core/base/time.ts";
import type { Session } from "../contract.ts";
import type { Place } from "./router.ts";

export interface Around {
  readonly session: Session;
  readonly place: Place;
  /** The server's clock minus ours. */
  readonly aheadMs: number;
}

export const AroundContext = createContext<Around | null>(null);

export function useAround(): Around {
  const around = useContext(AroundContext);
  if (around === null) throw new Error("a view is drawn outside the application");
  return around;
}

export const nowOf = ({ aheadMs }: Around): number => Date.now() + aheadMs;

export const aheadOf = (now: Timestamp): number => timestampToMs(now) - Date.now();
