/** The page on which texts for people are written here: no colours, no width, commands as they are typed. */

import { createPaint } from "../format/paint.ts";
import type { Page } from "../format/page.ts";

const columns = 100;

export const plainPage = (zone: string): Page => ({
  paint: createPaint(false),
  columns,
  bounds: null,
  zone,
  typed: (words) => words,
});
