/** The settings of a soak, for every host. */

export const contextWindow = 64_000;
/** Small, so that an hour folds as much as months would; the ceiling is reached now and then. */
export const settings = {
  freshTailCount: 6,
  leafChunkTokens: 1_500,
  leafTargetTokens: 200,
  condensedTargetTokens: 300,
  leafMinFanout: 4,
  condensedMinFanout: 3,
  incrementalMaxDepth: 1,
  contextThreshold: 0.6,
  largeFileTokenThreshold: 6_000,
  newSessionRetainDepth: 1,
  summaryTimeoutSeconds: 5,
  spendCeilingCalls: 40,
  spendWindowMinutes: 5,
};
export const asVariables = Object.fromEntries(
  Object.entries(settings).map(([key, value]) => [
    `LCM_${key.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`,
    String(value),
  ]),
);
