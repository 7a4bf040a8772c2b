import { nearest } from "../../words/nearest.ts";

/** Most candidates that a hint looks at: 100 hints over 1,000 names each take about 50 ms. */
const CANDIDATES_MAX = 1_000;

/** `did you mean …?`, where one of the candidates is very like the word. */
export function didYouMean(word: string, candidates: Iterable<string>): string | undefined {
  const found = nearest(word, firstOf(candidates, CANDIDATES_MAX));
  return found === undefined ? undefined : `did you mean \`${found}\`?`;
}

function* firstOf(words: Iterable<string>, count: number): Iterable<string> {
  let left = count;
  for (const word of words) {
    if (left-- <= 0) return;
    yield word;
  }
}
