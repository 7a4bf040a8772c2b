import assert from "node:assert/strict";
import type { LookupAddress } from "node:dns";
import { test } from "node:test";
import { createEgressGuard, type EgressGuard } from "../../../src/platform/http/egress.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";

function refuses(guard: EgressGuard, host: string): boolean {
  try {
    guard.assertHost(host);
    return false;
  } catch (error) {
    assert.ok(error instanceof FlowError && error.code === "EGRESS_REFUSED", String(error));
    return true;
  }
}

function lookup(guard: EgressGuard, hostname: string, family = 0): Promise<string[]> {
  return new Promise((resolve, reject) => {
    guard.lookup(hostname, { all: true, family }, (error, addresses) => {
      if (error) reject(error);
      else resolve((addresses as LookupAddress[]).map(({ address }) => address));
    });
  });
}

function resolver(...answers: string[][]): (hostname: string) => Promise<LookupAddress[]> {
  return () =>
    Promise.resolve((answers.shift() ?? []).map((address) => ({ address, family: address.includes(":") ? 6 : 4 })));
}

const closed = createEgressGuard({ allowPrivate: [] });

for (const address of [
  "127.0.0.1",
  "127.9.9.9",
  "0.0.0.0",
  "10.1.2.3",
  "172.16.0.1",
  "192.168.1.1",
  "100.64.0.1",
  "169.254.169.254",
  "168.63.129.16",
  "::ffff:168.63.129.16",
  "198.18.0.1",
  "224.0.0.1",
  "255.255.255.255",
  "::",
  "::1",
  "[::1]",
  "fe80::1",
  "fe80::1%eth0",
  "fc00::1",
  "fd00:ec2::254",
  "fec0::1",
  "ff02::1",
  "::ffff:127.0.0.1",
  "::ffff:a9fe:a9fe",
  "::127.0.0.1",
  "64:ff9b::7f00:1",
  "64:ff9b:1::1",
  "2002:7f00:1::",
  "2001::1",
  "100::1",
  "4000::1",
]) {
  test(`${address} is refused`, () => {
    assert.equal(refuses(closed, address), true);
  });
}

for (const address of [
  "1.1.1.1",
  "93.184.216.34",
  "2606:4700:4700::1111",
  "::ffff:1.1.1.1",
  "64:ff9b::101:101",
  "2002:101:101::",
]) {
  test(`${address} is public and allowed`, () => {
    assert.equal(refuses(closed, address), false);
  });
}

test("a refusal names the address, why, and the setting that allows it", () => {
  assert.throws(
    () => closed.assertHost("169.254.169.254"),
    /address 169\.254\.169\.254: .*linkLocal.*add 169\.254\.169\.254 or its range to FLOW_HTTP_ALLOW_PRIVATE/,
  );
});

test("ranges and single addresses can be allowed, and nothing beside them", () => {
  const guard = createEgressGuard({ allowPrivate: ["10.0.0.0/8", "192.168.1.7", "fd00::/8"] });
  for (const address of ["10.255.0.1", "192.168.1.7", "fd12::1", "::ffff:10.0.0.1"])
    assert.equal(refuses(guard, address), false);
  for (const address of ["11.0.0.1", "192.168.1.8", "fc00::1"])
    assert.equal(refuses(guard, address), address !== "11.0.0.1");
});

test("an address at which a cloud serves its machines is reached where it is named, not by a range around it", () => {
  for (const [address, range] of [
    ["168.63.129.16", "168.63.0.0/16"],
    ["fd00:ec2::254", "fd00::/8"],
    ["100.100.100.200", "100.64.0.0/10"],
  ] as const) {
    assert.equal(refuses(createEgressGuard({ allowPrivate: [range] }), address), true);
    assert.equal(refuses(createEgressGuard({ allowPrivate: [address] }), address), false);
  }
});

test("all allows everything", () => {
  const guard = createEgressGuard({ allowPrivate: "all" });
  for (const address of ["127.0.0.1", "::1", "169.254.169.254"]) assert.equal(refuses(guard, address), false);
});

test("an invalid range is an error that names the setting", () => {
  assert.throws(
    () => createEgressGuard({ allowPrivate: ["10.0.0.0/99"] }),
    /FLOW_HTTP_ALLOW_PRIVATE has "10\.0\.0\.0\/99"/,
  );
});

test("a name is refused when one of its addresses is private", async () => {
  const guard = createEgressGuard({ allowPrivate: [], resolve: resolver(["1.1.1.1", "10.0.0.1"]) });
  await assert.rejects(lookup(guard, "mixed.example"), /mixed\.example, which resolves to 10\.0\.0\.1/);
});

test("the addresses that were checked are the ones that are used, of the family asked for", async () => {
  const guard = createEgressGuard({
    allowPrivate: [],
    resolve: resolver(["1.1.1.1", "2606:4700::1"], ["1.1.1.1", "2606:4700::1"]),
  });
  assert.deepEqual(await lookup(guard, "public.example"), ["1.1.1.1", "2606:4700::1"]);
  assert.deepEqual(await lookup(guard, "public.example", 6), ["2606:4700::1"]);
});

test("a name that turns private at the next answer is refused then", async () => {
  const guard = createEgressGuard({ allowPrivate: [], resolve: resolver(["1.1.1.1"], ["127.0.0.1"]) });
  assert.deepEqual(await lookup(guard, "rebinding.example"), ["1.1.1.1"]);
  await assert.rejects(lookup(guard, "rebinding.example"), /resolves to 127\.0\.0\.1/);
});

test("a name without an address of the family is not found", async () => {
  const guard = createEgressGuard({ allowPrivate: "all", resolve: resolver(["1.1.1.1"]) });
  await assert.rejects(lookup(guard, "v4.example", 6), { code: "ENOTFOUND" });
});

test("localhost is refused by what it resolves to", async () => {
  await assert.rejects(lookup(closed, "localhost"), { code: "EGRESS_REFUSED" });
});
