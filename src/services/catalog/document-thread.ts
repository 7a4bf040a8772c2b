import { parentPort } from "node:worker_threads";
import { type DocumentAsked, readAsked } from "./read-asked.ts";

/* The thread that reads large documents, one after the other. What it throws ends it, and the server says so. */
parentPort?.on("message", (asked: DocumentAsked) => parentPort?.postMessage(readAsked(asked)));
