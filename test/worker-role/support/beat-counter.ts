import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { parentPort, workerData } from "node:worker_threads";

/*
 * Thread with a server that counts heartbeats in shared memory: the test's own thread stands still meanwhile. Cell 0: those
 * that named a running command; cell 1: its id.
 */
const cells = new BigInt64Array(workerData as SharedArrayBuffer);

const server = createServer((request, response) => {
  let body = "";
  request.on("data", (part: Buffer) => {
    body += part.toString("utf8");
  });
  request.on("end", () => {
    response.setHeader("content-type", "application/json");
    response.end('{"status":"ok","cancel":[],"lost":[]}');
    if (request.url !== "/api/worker/pool/heartbeat") return;
    const { running } = JSON.parse(body) as { running: { command_id: string }[] };
    if (running[0] === undefined) return;
    Atomics.store(cells, 1, BigInt(running[0].command_id));
    Atomics.add(cells, 0, 1n);
    Atomics.notify(cells, 0);
  });
});
server.listen(0, "127.0.0.1", () => parentPort?.postMessage((server.address() as AddressInfo).port));
