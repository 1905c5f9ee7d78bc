/** Stands in until EXTRACT's explorer is here. */
export function explore(content: string, about: { readonly name: string | null; readonly mimeType: string | null }): string {
  return `${about.name ?? "text"} ${about.mimeType ?? ""}: ${content.slice(0, 200)}`;
}
