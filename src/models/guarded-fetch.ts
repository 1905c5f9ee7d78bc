/** Sends requests that carry a credential or a conversation: to no other address, and reading answers up to a cap. */

import { LcmError } from "../core/base/errors.ts";

/** Far above the longest answer of a model, and small enough for several at once. */
export const answerBytesMax = 4 * 1024 * 1024;

/**
 * Throws `denied` for a redirect: following it would repeat the credential and the conversation there. Reading a longer
 * answer than the cap throws, too; an error's text is cut instead, so that its status is still seen.
 */
export const guardedFetch =
  (fetch: typeof globalThis.fetch): typeof globalThis.fetch =>
  async (input, init) => {
    const response = await fetch(input, { ...init, redirect: "manual" });
    const { status, statusText, headers, body, ok } = response;
    // A browser's fetch hides the status of a redirect.
    if (response.type === "opaqueredirect" || (status >= 300 && status < 400)) {
      await body?.cancel();
      const target = redirectTarget(headers.get("location"), input instanceof Request ? input.url : String(input));
      throw new LcmError("denied", `the server redirects to ${target} (HTTP ${status}), which is not followed`);
    }
    if (body === null) return response;
    return new Response(body.pipeThrough(cap(ok)), { status, statusText, headers });
  };

/** Without the path, which may contain what nobody should read in an error. */
function redirectTarget(location: string | null, base: string): string {
  const target = location !== null && URL.canParse(location, base) ? new URL(location, base) : null;
  if (target === null) return "an unknown address";
  return target.origin === new URL(base).origin ? "another path" : target.origin;
}

function cap(isAnswer: boolean): TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  let left = answerBytesMax;
  return new TransformStream({
    transform(chunk, controller) {
      if (chunk.length <= left) {
        left -= chunk.length;
        controller.enqueue(chunk);
        return;
      }
      if (isAnswer) throw new LcmError("unavailable", `the answer is longer than ${answerBytesMax} bytes`);
      controller.enqueue(chunk.subarray(0, left));
      controller.terminate();
    },
  });
}
