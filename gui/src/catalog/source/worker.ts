import { readSource, type SourceRead } from "./read-source.ts";

/* Reads documents beside the page, which takes what is typed meanwhile. */

self.addEventListener("message", ({ data }: MessageEvent<string>) => {
  self.postMessage(read(data));
});

function read(text: string): SourceRead {
  try {
    return readSource(text);
  } catch (error) {
    return { fault: { line: 1, why: error instanceof Error ? error.message : String(error) } };
  }
}
