/** Forgets in rows and stored files, then has the database erase what it keeps of the text. */

import type { Store } from "../core/model/store.ts";
import { forgottenMark } from "../core/model/types.ts";
import { filesToForget, isScrubPending, recordScrub } from "./maintenance/forget.ts";
import { rowSteps } from "./operations.ts";
import { forgetInFile, holdersOf, removeContents, replaceContent, type StoredFiles } from "./stored-files.ts";

export interface Forgetting extends StoredFiles {
  readonly isReadOnly: boolean;
  /** Erases what the database keeps of deleted rows. */
  readonly erase: () => Promise<void>;
}

export function createForgetting(files: Forgetting): Pick<Store, "planForget" | "forget"> {
  return {
    async planForget(scope, target) {
      await finishScrub(files);
      const plan = await files.read(() => rowSteps.planForget(files.deps, scope, target));
      const holders = await holdersOf(files, target, scope);
      return { ...plan, files: [...holders.files, ...holders.orphans].map(({ id }) => id) };
    },
    async forget(scope, plan) {
      await finishScrub(files);
      const { target } = plan;
      const holders = await holdersOf(files, target, scope);
      if ([...holders.files, ...holders.orphans].map(({ id }) => id).join() !== plan.files.join()) {
        return { kind: "stale", reason: "the files that contain it have changed since the plan was made" };
      }
      const outcome = await files.write(() => rowSteps.forget(files.deps, scope, plan));
      if (outcome.kind === "stale") return outcome;
      if (target.kind === "secret") for (const file of holders.files) await forgetInFile(files, file, target.text);
      const orphans = holders.orphans.map(({ storageUri }) => storageUri);
      await removeContents(files, orphans, scope);
      await scrub(files);
      return { ...outcome, removed: outcome.removed + holders.files.length + orphans.length };
    },
  };
}

/** Rows keep no trace of a forget that was interrupted after they were written, but pages and files do. */
async function finishScrub(files: Forgetting): Promise<void> {
  if (!files.isReadOnly && (await files.read(isScrubPending))) await scrub(files);
}

async function scrub(files: Forgetting): Promise<void> {
  const { read, write, erase } = files;
  for (const file of await read(filesToForget)) await replaceContent(files, file, forgottenMark, () => forgottenMark);
  await erase();
  await write(recordScrub);
}
