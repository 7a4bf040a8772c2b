import { parentPort } from "node:worker_threads";
import { type DocumentRequest, readRequested } from "../../../src/services/catalog/read-requested.ts";

/* The thread that reads documents, which ends over some of them, in the three ways in which a thread can, or goes on for ever. */
parentPort?.on("message", (asked: DocumentRequest) => {
  const { content } = asked;
  if (content.includes("ends: by itself")) process.exit(7);
  if (content.includes("ends: by a fault")) throw new Error("a fault of the thread");
  if (content.includes("ends: without memory")) {
    // Small objects, as documents make them.
    for (let kept: unknown; ; ) kept = { kept };
  }
  if (content.includes("never ends")) for (;;);
  parentPort?.postMessage(readRequested(asked));
});
