/** Marks what a search has found in what is read, unfolds it, and scrolls to it. */

import { useEffect } from "preact/hooks";
import type { Place } from "../router.ts";
import { useAround } from "../session.ts";

/** Words that the address names, a line each: as they stand in the text. */
export const soughtIn = ({ settings }: Place): readonly string[] =>
  (settings["mark"] ?? "").split("\n").filter((word) => word !== "");

/** `isThere`: once what is read is on the page. */
export function useFound(isThere: boolean): void {
  const { place } = useAround();
  useEffect(() => {
    const [root, words] = [document.getElementById("content"), soughtIn(place)];
    // Other ways to mark would change texts that Preact has drawn.
    if (!isThere || root === null || words.length === 0 || !("highlights" in CSS)) return;
    const found = occurrences(root, words);
    CSS.highlights.set("found", new Highlight(...found.map(({ range }) => range)));
    show(best(found));
    return () => void CSS.highlights.delete("found");
  }, [isThere, place.hash]);
}

interface Occurrence {
  readonly word: string;
  /** In all text of the page. */
  readonly at: number;
  readonly range: Range;
}

function occurrences(root: Element, words: readonly string[]): readonly Occurrence[] {
  const found: Occurrence[] = [];
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  let before = 0;
  for (let node = texts.nextNode(); node !== null; node = texts.nextNode()) {
    const text = node.nodeValue ?? "";
    for (const word of words)
      for (let at = text.indexOf(word); at !== -1; at = text.indexOf(word, at + word.length)) {
        const range = document.createRange();
        range.setStart(node, at);
        range.setEnd(node, at + word.length);
        found.push({ word, at: before + at, range });
      }
    before += text.length;
  }
  return found.sort((a, b) => a.at - b.at);
}

/** About a sentence. */
const togetherMax = 200;

/** Where most of the words are together. */
function best(found: readonly Occurrence[]): Range | null {
  let [most, range]: [number, Range | null] = [0, null];
  for (const [index, { at, range: each }] of found.entries()) {
    const together = new Set<string>();
    for (let next = index; (found[next]?.at ?? Infinity) < at + togetherMax; next++)
      together.add(found[next]?.word ?? "");
    if (together.size > most) [most, range] = [together.size, each];
  }
  return range;
}

function show(range: Range | null): void {
  if (range === null) return;
  const around = range.startContainer.parentElement;
  for (let fold = around?.closest("details"); fold; fold = fold.parentElement?.closest("details")) fold.open = true;
  const top = (): number => range.getBoundingClientRect().top;
  const box = around?.closest("pre");
  if (box) box.scrollTop += top() - box.getBoundingClientRect().top - box.clientHeight / 2;
  scrollBy(0, top() - innerHeight / 2);
}
