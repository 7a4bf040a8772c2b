// `npm run dev`: server and worker out of this checkout, bundled anew and started again when a file of src/ or migrations/
// changes, and the page from vite, which reloads what changes in gui/. Ctrl-C ends all of them. What stands after `--` goes to
// `flow serve`: `npm run dev -- --port 9000`.
import { spawn } from "node:child_process";
import { watch } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ROOT } from "./parts.js";
import { setUp } from "./set-up.js";

/** An editor that saves several files at once causes one restart. */
const SETTLE_MS = 150;

const words = process.argv.slice(2);
const { values } = parseArgs({ args: words, options: { port: { type: "string" } }, strict: false });
const port = values.port ?? process.env.FLOW_SERVER_PORT ?? "8082";
const stopping = new AbortController();
const say = (text) => process.stderr.write(`dev: ${text}\n`);

await setUp(["packages", "program"]);
const { createServer } = await import("vite");
const backend = `http://127.0.0.1:${port}`;
const page = await createServer({
  configFile: join(ROOT, "gui/vite.config.ts"),
  server: { proxy: { "/api": backend, "/results": backend } },
});

let service = startService();
for (const signal of ["SIGINT", "SIGTERM"])
  process.on(signal, () => {
    // A second one makes the service leave at once.
    if (stopping.signal.aborted) void service.end();
    stopping.abort();
  });
await page.listen();
page.printUrls();

let timer;
let changing = Promise.resolve();
for (const folder of ["src", "migrations"])
  watch(join(ROOT, folder), { recursive: true, signal: stopping.signal }, () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      changing = changing.then(restart);
    }, SETTLE_MS);
  }).on("error", (error) => say(`changes of ${folder} are no longer seen: ${error.message}`));

await new Promise((resolve) => stopping.signal.addEventListener("abort", resolve));
clearTimeout(timer);
await changing;
await Promise.all([service.end(), page.close()]);

function startService() {
  const program = join(ROOT, "dist/flow/main.js");
  // In a group of its own: it hears of Ctrl-C from here, once, and stops in order.
  const child = spawn(process.execPath, [program, "serve", "--role", "all", ...words], {
    stdio: "inherit",
    detached: true,
  });
  let isAsked = false;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  void ended.then((code) => {
    if (isAsked || stopping.signal.aborted) return;
    say(`the service ended with ${code}; it is started again after the next change`);
  });
  return {
    end() {
      isAsked = true;
      child.kill("SIGTERM");
      return ended;
    },
  };
}

async function restart() {
  if (stopping.signal.aborted) return;
  const bundling = spawn(process.execPath, [join(ROOT, "bin/bundle.js")], { cwd: ROOT, stdio: "inherit" });
  const code = await new Promise((resolve) => bundling.once("exit", resolve));
  // The errors stand above; what runs goes on running.
  if (code !== 0 || stopping.signal.aborted) return;
  say("the program changed, the service is started again");
  await service.end();
  if (!stopping.signal.aborted) service = startService();
}
