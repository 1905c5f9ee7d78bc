/** Checks every text of a database file against its checksum, for those who have only a path, such as a restore. */

import { LcmError } from "../../core/base/errors.ts";
import { damagedTexts } from "../checksums.ts";
import { identify } from "./file-kind.ts";
import { openReadOnly } from "./read-only.ts";
import { createRunner } from "./runner.ts";

const namedMax = 5;

/** Throws `corrupt` if a text is damaged. A file of an earlier format has no checksums, and passes. */
export function checkTexts(path: string): void {
  if (identify(path) !== "current") return;
  using db = openReadOnly(path);
  const runner = createRunner(db);
  const damaged = runner.run(damagedTexts(namedMax + 1));
  runner.forgetStatements();
  if (damaged.length === 0) return;
  const named = damaged.slice(0, namedMax).join(", ");
  const more = damaged.length > namedMax ? " and others" : "";
  throw new LcmError("corrupt", `${path} is damaged: texts that do not match their checksums are ${named}${more}`, {
    hint: `nothing was changed; restore another backup, or see all of them with \`lcm doctor --db ${path}\``,
  });
}
