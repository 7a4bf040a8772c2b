import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { packagePath } from "../../src/platform/system/package-file.ts";

/** flow's own image, which is built from this folder. */
const OWN = /^(flow|\$\{FLOW_IMAGE:-flow:latest\})$/;
/** A version that people read, and behind it what the registry cannot point elsewhere. */
const PINNED = /^[a-z0-9./-]+:\d[\w.-]*@sha256:[0-9a-f]{64}$/;

function imagesIn(text: string): string[] {
  const lines = text.split("\n");
  const images = lines.flatMap((line) => /^\s*(?:- )?image:\s*(\S+)/.exec(line)?.[1] ?? []);
  const node = lines.flatMap((line) => /^ARG NODE=(\S+)/.exec(line)?.[1] ?? []);
  return [...images, ...node.map((tag) => `node:${tag}`)];
}

test("every foreign image is pinned: its version beside a whole digest, the same in every file", () => {
  const files = readdirSync(packagePath("deploy"), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.ya?ml$/.test(name))
    .map((name) => join("deploy", name));
  const images = [...files, "Dockerfile"].flatMap((name) => imagesIn(readFileSync(packagePath(name), "utf8")));
  assert.ok(images.length >= 5, images.join(", "));
  assert.deepEqual(
    images.filter((image) => !OWN.test(image) && !PINNED.test(image)),
    [],
  );
  const tags = [...new Set(images)].map((image) => image.split("@")[0]);
  assert.equal(new Set(tags).size, tags.length, `one tag has two digests: ${tags.join(", ")}`);
});

test("an image without a version or a whole digest is found", () => {
  const digest = "a".repeat(64);
  const unpinned = ["postgres:latest", "postgres", "postgres:17", `nats:2@sha256:${digest.slice(1)}`];
  const text = [...unpinned, `nats:2.11-alpine@sha256:${digest}`].map((image) => `    image: ${image}`).join("\n");
  assert.deepEqual(
    imagesIn(text).filter((image) => !PINNED.test(image)),
    unpinned,
  );
  assert.deepEqual(imagesIn(`ARG NODE=22-bookworm-slim@sha256:${digest}`), [`node:22-bookworm-slim@sha256:${digest}`]);
});
