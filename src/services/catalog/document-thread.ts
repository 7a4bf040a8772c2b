import { parentPort } from "node:worker_threads";
import { type DocumentRequest, readRequested } from "./read-requested.ts";

/* The thread that reads large documents, one after the other. What it throws ends it, and the server says so. */
parentPort?.on("message", (request: DocumentRequest) => parentPort?.postMessage(readRequested(request)));
