import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

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
    // Advice on the time that plugins take is no fault of the page.
    rolldownOptions: { checks: { pluginTimings: false } },
    target: "es2023",
  },
  server: { proxy: { "/api": "http://127.0.0.1:8082", "/results": "http://127.0.0.1:8082" } },
});
