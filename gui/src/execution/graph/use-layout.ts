import { useEffect, useMemo, useState } from "react";
import type { Places, Sketch } from "./layout.ts";
import type { Drawn } from "./neighbourhood.ts";

/** How a graph's layout stands. */
export interface Layout {
  places: Places | undefined;
  failed: boolean;
}

/** Where each step stands, once that is known. It is found in a worker, and only anew when steps or arrows change. */
export function useLayout({ steps, arcs }: Drawn): Layout {
  const sketch = useMemo(
    () => JSON.stringify({ names: steps.map(({ name }) => name), arcs: arcs.map(({ from, to }) => [from, to]) }),
    [steps, arcs],
  );
  const [layout, setLayout] = useState<Layout & { of: string }>({ of: "", places: undefined, failed: false });
  useEffect(() => {
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    worker.addEventListener("message", ({ data }: MessageEvent<Places>) => {
      setLayout({ of: sketch, places: data, failed: false });
      worker.terminate();
    });
    worker.addEventListener("error", () => setLayout({ of: sketch, places: undefined, failed: true }));
    worker.postMessage(JSON.parse(sketch) as Sketch);
    return () => worker.terminate();
  }, [sketch]);
  return layout.of === sketch ? layout : { places: undefined, failed: false };
}
