import { placesOf, type Sketch } from "./layout.ts";

/* Lays graphs out beside the page, which stays quick meanwhile. */

self.addEventListener("message", ({ data }: MessageEvent<Sketch>) => {
  self.postMessage(placesOf(data));
});
