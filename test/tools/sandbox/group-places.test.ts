import assert from "node:assert/strict";
import { test } from "node:test";
import { groupPlaces } from "../../../src/tools/sandbox/group-places.ts";

const UNIFIED = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";

test("of cgroup v2: a service's group, a container's own, and one of a container that sees the machine's tree", () => {
  const v2 = { version: 2, controllers: ["pids", "memory"] };
  assert.deepEqual(groupPlaces("0::/system.slice/flow.service\n", `${UNIFIED}\n`), [
    { ...v2, folder: "/sys/fs/cgroup/system.slice/flow.service", isContainer: false },
  ]);
  assert.deepEqual(groupPlaces("0::/\n", UNIFIED), [{ ...v2, folder: "/sys/fs/cgroup", isContainer: true }]);
  const bound = "30 23 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw";
  assert.deepEqual(groupPlaces("0::/docker/abc/worker", bound), [
    { ...v2, folder: "/sys/fs/cgroup/worker", isContainer: false },
  ]);
  assert.deepEqual(groupPlaces("0::/docker/abc", bound), [{ ...v2, folder: "/sys/fs/cgroup", isContainer: true }]);
});

test("of cgroup v1: the tree of processes alone, whatever else is in it; its place beside version 2 comes with that", () => {
  const mounts = [
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory",
    "39 31 0:36 / /sys/fs/cgroup/a\\040b rw - cgroup cgroup rw,cpu,pids",
    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw",
  ].join("\n");
  const places = groupPlaces("9:name=systemd:/\n8:cpu,pids:/x\n4:memory:/y\n0::/z\n", mounts);
  assert.deepEqual(
    places.map(({ version, folder, controllers }) => [version, folder, controllers]),
    [
      [1, "/sys/fs/cgroup/a b/x", ["pids"]],
      [2, "/sys/fs/cgroup/unified/z", ["pids", "memory"]],
    ],
  );
});

test("no place: nothing mounted, a path outside of the mount, another process's namespace, a text of another form", () => {
  assert.deepEqual(groupPlaces("0::/a", ""), []);
  assert.deepEqual(groupPlaces("0::/docker/abcd", "30 23 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw"), []);
  assert.deepEqual(groupPlaces("0::/../other", UNIFIED), []);
  assert.deepEqual(groupPlaces("", UNIFIED), []);
  assert.deepEqual(groupPlaces("nonsense\n::\n", `${UNIFIED}\nnonsense`), []);
});
