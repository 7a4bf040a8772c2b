import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { packagePath } from "../../src/platform/system/package-file.ts";

/** flow's own image, which is built from this folder. */
const OWN = /^(flow|\$\{FLOW_IMAGE:-flow:latest\})$/;
/** A version that people read, and behind it, where it is pinned, what the registry cannot point elsewhere. */
const NAMED = /^[a-z0-9./-]+:\d[\w.-]*(@sha256:[0-9a-f]{64})?$/;

function imagesIn(text: string): string[] {
  const lines = text.split("\n");
  const images = lines.flatMap((line) => /^\s*(?:- )?image:\s*(\S+)/.exec(line)?.[1] ?? []);
  const node = lines.flatMap((line) => /^ARG NODE=(\S+)/.exec(line)?.[1] ?? []);
  return [...images, ...node.map((tag) => `node:${tag}`)];
}

test("every foreign image names its version, and one that is pinned names it beside a whole digest", () => {
  const files = readdirSync(packagePath("deploy"), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.ya?ml$/.test(name))
    .map((name) => join("deploy", name));
  const images = [...files, "Dockerfile"].flatMap((name) => imagesIn(readFileSync(packagePath(name), "utf8")));
  assert.ok(images.length >= 5, images.join(", "));
  assert.deepEqual(
    images.filter((image) => !OWN.test(image) && !NAMED.test(image)),
    [],
  );
});

test("what is no version and no whole digest is found", () => {
  const digest = "a".repeat(64);
  const text = ["postgres:latest", "postgres", `nats:2@sha256:${digest.slice(1)}`, `nats:2.11-alpine@sha256:${digest}`]
    .map((image) => `    image: ${image}`)
    .join("\n");
  assert.deepEqual(
    imagesIn(text).filter((image) => !NAMED.test(image)),
    ["postgres:latest", "postgres", `nats:2@sha256:${digest.slice(1)}`],
  );
  assert.deepEqual(imagesIn(`ARG NODE=22-bookworm-slim@sha256:${digest}`), [`node:22-bookworm-slim@sha256:${digest}`]);
});
