/** Searches messages and summaries by words or by regular expression. A result without caveats is complete. */

import type { SearchRequest, SearchResult } from "../../core/model/store.ts";
import { searchByRegex } from "./by-regex.ts";
import { searchByWords } from "./by-words.ts";
import { postingsMax } from "./candidates.ts";
import type { SearchIndex } from "./indexing.ts";
import { checkRequest, type Deadline } from "./limits.ts";
import { filesUnsearched } from "./search-files.ts";
import { atOnce, type Script } from "../script.ts";

export function* search(
  index: SearchIndex,
  request: SearchRequest,
  deadline: Deadline,
  postings = postingsMax,
): Script<SearchResult> {
  checkRequest(request);
  const [result, files] = yield* atOnce([
    request.mode === "regex" ? searchByRegex(request, deadline) : searchByWords({ index, request, deadline, postings }),
    filesUnsearched(request),
  ]);
  return files === 0 ? result : { ...result, caveats: [...result.caveats, { kind: "files", files }] };
}
