import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** The reference server of the Model Context Protocol in a process of its own. */
export interface TestMcpServer {
  /** What a client connects to. */
  endpoint: string;
  close(): Promise<void>;
}

/**
 * The server takes its port from PORT and prints that number, so that port 0 (any free one) would print 0. This runs
 * before it and prints the port that it got.
 */
const ANNOUNCE = `data:text/javascript,${encodeURIComponent(`
  import net from "node:net";
  const { listen } = net.Server.prototype;
  net.Server.prototype.listen = function (...args) {
    this.once("listening", () => console.error("PORT=" + this.address().port));
    return listen.apply(this, args);
  };
`)}`;

/** Starts the server on a free port and waits until it listens. */
export async function startMcpServer(mode: "streamableHttp" | "sse" = "streamableHttp"): Promise<TestMcpServer> {
  const script = fileURLToPath(import.meta.resolve("@modelcontextprotocol/server-everything/dist/index.js"));
  const child = spawn(process.execPath, ["--import", ANNOUNCE, script, mode], {
    env: { PATH: process.env["PATH"], PORT: "0" },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const said: string[] = [];
  for await (const line of createInterface({ input: child.stderr })) {
    said.push(line);
    const port = /^PORT=(\d+)$/.exec(line)?.[1];
    if (port === undefined) continue;
    child.stderr.resume();
    return {
      endpoint: `http://127.0.0.1:${port}/${mode === "sse" ? "sse" : "mcp"}`,
      async close() {
        if (child.exitCode !== null || child.signalCode !== null) return;
        child.kill("SIGKILL");
        await once(child, "exit");
      },
    };
  }
  throw new Error(`The MCP server did not start: ${said.join("\n")}`);
}
