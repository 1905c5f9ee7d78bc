/** Stops the built library and plugin on a Node that is too old, before anything else of theirs is loaded. */

/** What package.json asks for: the build puts it here. */
declare const neededNode: string;

const [major = 0, minor = 0] = neededNode.split(".").map(Number);
const [ownMajor = 0, ownMinor = 0] = process.versions.node.split(".").map(Number);

if (ownMajor < major || (ownMajor === major && ownMinor < minor)) {
  const own = `Node ${process.versions.node} (${process.execPath})`;
  throw new Error(
    `lossless-claw needs Node ${neededNode} or newer, and this is ${own}. Install one from https://nodejs.org/en/download.`,
  );
}
