import { join } from "node:path";

/** A control group of a process, as a folder below which it may make others. */
export interface GroupPlace {
  version: 1 | 2;
  folder: string;
  /** What it can limit, of that which is asked for: `pids`, `memory`. */
  controllers: string[];
  /** The topmost group that this process sees is its own: that of a container. */
  isContainer: boolean;
}

/**
 * The groups of a process that limit processes and memory, from its `/proc/<pid>/cgroup` and `/proc/<pid>/mountinfo`. Of version 1,
 * which has a tree per controller, only that of processes: the memory of a group there does not count all that its processes
 * use. Where version 1 has that controller, version 2 does not.
 */
export function groupPlaces(cgroup: string, mountinfo: string): GroupPlace[] {
  const mounts = mountinfo.split("\n").flatMap(mountOf);
  return cgroup.split("\n").flatMap((line): GroupPlace[] => {
    const [, controllers = "", path = ""] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    if (path === "") return [];
    const names = controllers.split(",");
    const version = controllers === "" ? 2 : 1;
    if (version === 1 && !names.includes("pids")) return [];
    const mount = mounts.find(({ type, options }) =>
      version === 2 ? type === "cgroup2" : type === "cgroup" && options.includes("pids"),
    );
    // A path outside of what is mounted: another container's view.
    if (mount === undefined || path.startsWith("/..")) return [];
    const isBelow = mount.root === "/" || path === mount.root || path.startsWith(`${mount.root}/`);
    if (!isBelow) return [];
    const below = mount.root === "/" ? path : path.slice(mount.root.length);
    const folder = join(mount.point, below);
    const wanted = version === 2 ? ["pids", "memory"] : ["pids"];
    return [
      {
        version,
        folder: folder.replace(/(.)\/$/, "$1"),
        controllers: wanted,
        isContainer: below === "" || below === "/",
      },
    ];
  });
}

interface Mount {
  root: string;
  point: string;
  type: string;
  options: string[];
}

/** A line of mountinfo (proc_pid_mountinfo(5)): blanks in names are octal numbers. */
function mountOf(line: string): Mount[] {
  const [before = "", after = ""] = line.split(" - ");
  const [, , , root, point] = before.split(" ").map(plainName);
  const [type, , options = ""] = after.split(" ");
  if (root === undefined || point === undefined || type === undefined) return [];
  return [{ root, point, type, options: options.split(",") }];
}

function plainName(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8)));
}
