/**
 * Makes a value when it is first needed: patterns with Unicode classes and large tables take milliseconds, in every
 * process and thread that loads their module, and most of these never use them.
 */

export function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | null = null;
  return () => (made ??= { value: make() }).value;
}
