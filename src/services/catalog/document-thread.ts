import { parentPort } from "node:worker_threads";
import { readDocument } from "./read-document.ts";

/* The thread that reads large documents, one after the other. What it throws ends it, and the server says so. */
parentPort?.on("message", (content: string) => parentPort?.postMessage(readDocument(content)));
