import { useEffect, useMemo, useState } from "react";
import type { Laid, Sketch } from "./layout.ts";

/** How a graph's layout stands. */
export interface Layout {
  laid: Laid | undefined;
  failed: boolean;
}

/**
 * Where each step stands, once that is known; until then where they stood before. It is found in a worker, and only anew when the
 * sketch changes.
 */
export function useLayout(sketch: Sketch, ratio: number): Layout {
  // Small changes of the window move nothing.
  const rough = Math.round(ratio * 4) / 4;
  const text = useMemo(() => JSON.stringify({ sketch, ratio: rough }), [sketch, rough]);
  const [layout, setLayout] = useState<Layout>({ laid: undefined, failed: false });
  useEffect(() => {
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    worker.addEventListener("message", ({ data }: MessageEvent<Laid>) => {
      setLayout({ laid: data, failed: false });
      worker.terminate();
    });
    worker.addEventListener("error", () => setLayout({ laid: undefined, failed: true }));
    worker.postMessage(JSON.parse(text));
    return () => worker.terminate();
  }, [text]);
  return layout;
}
