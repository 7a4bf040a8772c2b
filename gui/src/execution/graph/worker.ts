import { laidOut, type Sketch } from "./layout.ts";

/* Lays graphs out beside the page, which stays quick meanwhile. */

self.addEventListener("message", ({ data }: MessageEvent<{ sketch: Sketch; ratio: number }>) => {
  self.postMessage(laidOut(data.sketch, data.ratio));
});
