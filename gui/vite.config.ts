import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const shortName = (name: string) => name.replace(/~.*/, "");

/** `npm run build` puts the page into `dist/page`; `npx vite gui` serves it while it is written, beside a server on 8082. */
export default defineConfig({
  root: import.meta.dirname,
  plugins: [react()],
  // Files name each other by where they stand themselves: whoever serves them may put a path before all of them.
  base: "./",
  build: {
    outDir: "../dist/page",
    emptyOutDir: true,
    // Fonts and pictures in the text of a stylesheet would need `data:` in the Content-Security-Policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
    rolldownOptions: {
      // Advice on the time that plugins take is no fault of the page.
      checks: { pluginTimings: false },
      output: {
        // A shared part is not called after all the pages that share it.
        chunkFileNames: ({ name }) => `assets/${shortName(name)}-[hash].js`,
        assetFileNames: ({ names: [name = ""] }) => `assets/${shortName(name.replace(/\.\w+$/, ""))}-[hash][extname]`,
        codeSplitting: {
          groups: [
            // What every page needs is one file, and small parts that several pages share are few: each file is a request.
            { name: "frame", tags: ["$initial"], priority: 2 },
            {
              name: "parts",
              minShareCount: 3,
              maxModuleSize: 6_000,
              entriesAware: true,
              entriesAwareMergeThreshold: 1_500,
              priority: 1,
            },
          ],
        },
      },
    },
    target: "es2023",
  },
  server: { proxy: { "/api": "http://127.0.0.1:8082", "/results": "http://127.0.0.1:8082" } },
});
