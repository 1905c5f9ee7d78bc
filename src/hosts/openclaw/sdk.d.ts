/** Types for what we import from the host at run time, which it resolves for plugins without typing it. */

/* oxlint-disable typescript/consistent-type-imports -- an ambient module cannot import from a relative path */

declare module "openclaw/plugin-sdk/session-transcript-runtime" {
  export const readSessionTranscriptRawDelta: import("./host-api.ts").ReadTranscript;
}

declare module "openclaw/plugin-sdk/core" {
  export const delegateCompactionToRuntime: import("./host-api.ts").DelegateCompaction;
}
