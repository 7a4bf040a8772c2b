import { randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, readlinkSync, rmdirSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { type GroupPlace, groupPlaces } from "./group-places.ts";
import type { Program, SandboxLimits } from "./sandbox.ts";

/**
 * Control groups of Linux: what all processes of one sandbox may use together. They bind a worker that runs as root too, which the
 * limit of processes of `setrlimit` does not, and they count memory once for all processes.
 */
export interface ControlGroups {
  /** What they limit and how, for people: `processes and memory by cgroup v2`. */
  readonly summary: string;
  /** The program in a group of its own. Throws FlowError INTERNAL where none can be made. */
  wrap(program: Program): Program;
  /** Removes the groups of programs that have ended, or end now. */
  close(): Promise<void>;
}

/** Group of the worker itself and what it was started with, beside those of its sandboxes: cgroup v2 has processes in leaves only. */
const LEAF = "flow-worker";
const GROUP = /^flow-task-(\d+)-[0-9a-f]+$/;
/** What makes a sandbox: bubblewrap or `unshare`, the first process within, the forwarder. */
const MAKERS = 8;
/** A group that is empty so long after it was made has ended: its first process enters it within milliseconds. */
const ENTERED_MS = 60_000;

/** A program that was killed is gone within milliseconds; a group that is left is removed by the next worker. */
const LAST_TRIES = 10;
const TRY_MS = 20;

/** Rounds in which processes move to the leaf: some may be started meanwhile. */
const MOVES_MAX = 5;

/** Enters the groups whose files are named before `--`, or does not run the program. */
const ENTER = `while [ "$1" != -- ]; do echo $$ > "$1" || exit 125; shift; done; shift; exec "$@"`;

/** Undefined where this process may make no groups. */
export function openControlGroups(limits: SandboxLimits): ControlGroups | undefined {
  if (process.platform !== "linux") return undefined;
  let places = usablePlaces();
  if (places.length === 0) return undefined;
  for (const { folder } of places) removeLeft(folder);
  const made = new Map<string, number>();
  const sweep = (minAgeMs: number) => {
    const before = performance.now() - minAgeMs;
    for (const [folder, at] of made) if (at <= before && isRemoved(folder)) made.delete(folder);
  };
  const make = () => {
    const name = `flow-task-${process.pid}-${randomBytes(6).toString("hex")}`;
    return places.map((place) => {
      const folder = join(place.folder, name);
      mkdirSync(folder);
      made.set(folder, performance.now());
      for (const [file, value] of limitFiles(place, limits)) writeFileSync(join(folder, file), value);
      return join(folder, "cgroup.procs");
    });
  };
  const makeAnew = () => {
    try {
      return make();
    } catch {
      // systemd takes controllers away from a service that did not ask for them (`Delegate=`), when it looks at it again.
      places = usablePlaces();
      if (places.length === 0) throw new Error("this process may make none any more");
      return make();
    }
  };
  const controllers = new Set(places.flatMap(({ controllers }) => controllers));
  const what = controllers.has("memory") ? "processes and memory" : "processes";
  return {
    summary: `${what} by cgroup v${places[0]?.version}`,
    wrap(program) {
      sweep(ENTERED_MS);
      try {
        const args = ["-c", ENTER, "sh", ...makeAnew(), "--", program.file, ...program.args];
        return { ...program, file: "/bin/sh", args };
      } catch (error) {
        throw new FlowError("INTERNAL", `No control group for a sandbox could be made: ${messageOf(error)}`);
      }
    },
    async close() {
      for (let tries = 0; made.size > 0 && tries < LAST_TRIES; tries += 1) {
        sweep(0);
        if (made.size > 0) await sleep(TRY_MS);
      }
    },
  };
}

/** Where groups can be made, tried by making one. */
function usablePlaces(): GroupPlace[] {
  try {
    const read = (file: string) => readFileSync(`/proc/self/${file}`, "utf8");
    return groupPlaces(read("cgroup"), read("mountinfo")).flatMap((place) => {
      try {
        const usable = place.version === 2 ? delegated(place) : place;
        const folder = join(usable.folder, `flow-task-${process.pid}-0`);
        mkdirSync(folder);
        try {
          for (const [file] of limitFiles(usable, { processes: 1, memoryBytes: 1, scratchBytes: 1 }))
            readFileSync(join(folder, file));
        } finally {
          rmdirSync(folder);
        }
        return [usable];
      } catch {
        return [];
      }
    });
  } catch {
    return [];
  }
}

/**
 * The group of this process, ready for groups below it: its processes move into a leaf, and its controllers are handed on. Only
 * where all of its processes are flow's, or it is a container's own: a user's session is not ours to change. Throws where it may not.
 */
function delegated(place: GroupPlace): GroupPlace {
  const folder = basename(place.folder) === LEAF ? dirname(place.folder) : place.folder;
  const isRoot = !readdirSync(folder).includes("cgroup.type");
  const offered = readFileSync(join(folder, "cgroup.controllers"), "utf8").trim().split(" ");
  const controllers = place.controllers.filter((name) => offered.includes(name));
  if (!controllers.includes("pids")) throw new Error(`${folder} has no controller of processes`);
  const members = membersOf(folder);
  if (!isRoot && members.length > 0) {
    if (!place.isContainer && !members.every(isOurs)) throw new Error(`${folder} has processes of others`);
    mkdirSync(join(folder, LEAF), { recursive: true });
  }
  const handOn = controllers.map((name) => `+${name}`).join(" ");
  for (let tries = 1; ; tries += 1) {
    try {
      writeFileSync(join(folder, "cgroup.subtree_control"), handOn);
      return { ...place, folder, controllers };
    } catch (error) {
      // EBUSY: it has processes, perhaps some that have just been started.
      if (isRoot || tries === MOVES_MAX) throw error;
      moveToLeaf(folder);
    }
  }
}

function moveToLeaf(folder: string): void {
  for (const pid of membersOf(folder)) {
    try {
      writeFileSync(join(folder, LEAF, "cgroup.procs"), pid);
    } catch (error) {
      // It has ended.
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }
}

function membersOf(folder: string): string[] {
  return readFileSync(join(folder, "cgroup.procs"), "utf8").split("\n").filter(Boolean);
}

/** A process of the program that this one runs: a worker, its server, their PostgreSQL, which a server starts. */
function isOurs(pid: string): boolean {
  if (Number(pid) === process.pid) return true;
  const parent = /^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? "0";
  return readlinkSync(`/proc/${pid}/exe`) === process.execPath || (parent !== "1" && parent !== "0" && isOurs(parent));
}

/** Files of a group and what they hold. The scratch folder is kept in memory, and counts. */
function limitFiles(
  { version, controllers }: GroupPlace,
  { processes, memoryBytes, scratchBytes }: Pick<SandboxLimits, "processes" | "memoryBytes" | "scratchBytes">,
): [file: string, value: string][] {
  const files: [string, string][] = [];
  if (controllers.includes("pids")) files.push(["pids.max", String(processes + MAKERS)]);
  if (version === 2 && controllers.includes("memory")) {
    files.push(["memory.max", String(memoryBytes + scratchBytes)]);
    // All of a sandbox ends, instead of some process of it.
    files.push(["memory.oom.group", "1"]);
  }
  return files;
}

/** What workers have left that were killed. */
function removeLeft(folder: string): void {
  for (const name of readdirSync(folder)) {
    const pid = GROUP.exec(name)?.[1];
    if (pid !== undefined && !isRunning(Number(pid))) isRemoved(join(folder, name));
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** False while processes are in it. */
function isRemoved(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
}
