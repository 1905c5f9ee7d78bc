/** Stub: see the contract. */
export function mount(_program: unknown, _given: { readonly config: Readonly<Record<string, unknown>> }): void {
  return undefined;
}
