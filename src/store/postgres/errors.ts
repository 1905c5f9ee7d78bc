/** Translates the errors of the driver and of the server into LcmErrors. None of them shows the URL. */

import { LcmError, errorText, type ErrorCode } from "../../core/base/errors.ts";
import { schemaVersion } from "./schema.ts";

export const codeOf = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";

/** Serialization failure and deadlock: the server ended one of several transactions, which can be run again. */
export const isRetryable = (error: unknown): boolean =>
  ["40001", "40P01"].includes(codeOf(error)) || isStalePlan(error);

/** The tables have been upgraded since this connection prepared the statement. */
export const isStalePlan = (error: unknown): boolean =>
  codeOf(error) === "0A000" && error instanceof Error && /cached plan/.test(error.message);

/** The connection is gone, and with it whatever was not committed. */
export const isLost = (error: unknown): boolean =>
  /^(08|57P0[123])|^(ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|ENOTFOUND|EAI_)/.test(codeOf(error)) ||
  (error instanceof Error &&
    /^(Connection terminated|Client has encountered a connection error|timeout exceeded)/.test(error.message));

/** Only errors of the database are translated; any other is returned unchanged. */
export function translateError(error: unknown): unknown {
  if (error instanceof LcmError) return error;
  const as = (code: ErrorCode, what: string, hint: string): LcmError =>
    new LcmError(code, `${what}: ${errorText(error)}`, { cause: error, hint });
  const code = codeOf(error);
  if (errorText(error).startsWith("Cannot use a pool after")) return new LcmError("unavailable", "the store is closed");
  if (isLost(error) || code.startsWith("53"))
    return as("unavailable", "the database cannot be reached", "check that the server runs and accepts connections");
  if (code === "55P03") return as("unavailable", "the database has been locked by another process", "try again later");
  if (code.startsWith("28"))
    return as("denied", "the database refused to let us in", "check the user, and PGPASSWORD or PGPASSFILE");
  if (code === "3D000") return as("not_found", "there is no such database", "create it with createdb");
  if (code === "42501" || code === "25006")
    return as("denied", "no permission to use the database", "check what this role may do in the schema");
  if (code === "XX001" || code === "XX002")
    return as("corrupt", "the database is damaged", "restore a backup of the server");
  return error;
}

/** Another program on this database is newer than this one. */
/** Other conflicts are of one call; these end all work of this program on the database. */
const newerSchemas = new WeakSet<object>();

export function newerSchema(version: number): LcmError {
  const message = `the database has schema version ${version}; this program knows ${schemaVersion}`;
  const error = new LcmError("conflict", message, { hint: "upgrade lossless-claw on this machine" });
  newerSchemas.add(error);
  return error;
}

export const isNewerSchema = (error: unknown): boolean =>
  typeof error === "object" && error !== null && newerSchemas.has(error);

export const commitUnknown = (cause: unknown): LcmError =>
  new LcmError(
    "unavailable",
    "the connection broke during a commit, so it is not known whether the change was stored",
    {
      cause,
      hint: "make the same call again: what has a key is stored once",
    },
  );
