import { dirname } from "node:path";
import type { SandboxPlan } from "./bubblewrap.ts";
import { FILES_FOLDER, type Program, SCRATCH_FOLDER } from "./sandbox.ts";
import type { SharedMount } from "./shared-folder.ts";
import { outerEnvironment, START_SCRIPT, startArguments } from "./start-script.ts";

/**
 * How util-linux starts the program in a sandbox, where there is no bubblewrap: `unshare` makes the namespaces, a shell script
 * within mounts a new root over `mountPoint` (an empty folder of the worker, which outside stays empty), and `setpriv` gives up
 * every capability for good. It dies with `unshare`, and that with the worker.
 */
export function unshareCommand(mountPoint: string, plan: SandboxPlan, program: Program): Program {
  const namespaces = ["--user", "--map-root-user", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child"];
  if (!plan.sharesNetwork) namespaces.push("--net");
  return {
    file: "setpriv",
    args: [
      ...["--pdeathsig", "KILL", "--", "unshare"],
      ...namespaces,
      "--",
      "/bin/sh",
      "-c",
      rootScript(mountPoint, plan, program.files),
      "sh",
      ...startArguments(plan.limits, program),
    ],
    env: outerEnvironment(program.env),
    cwd: "/",
  };
}

const DEVICES = ["null", "zero", "full", "random", "urandom"];
/** No program gains anything by a set-uid bit or a device in there. */
const SAFE = "nosuid,nodev";

/** Builds the root and goes on within. All mounts of files are one call of `mount`, which reads them as a table. */
function rootScript(mountPoint: string, plan: SandboxPlan, ownFiles: string | undefined): string {
  const shown = [
    ...plan.files.flatMap((file) => (file.type === "link" ? [] : [{ ...file, isFolder: file.type === "folder" }])),
    ...DEVICES.map((name) => ({ source: `/dev/${name}`, path: `/dev/${name}`, isFolder: false })),
  ];
  const extra = plan.extra.map((file) => ({ ...file, isFolder: false }));
  const folders = [...shown, ...extra].map(({ path, isFolder }) => (isFolder ? path : dirname(path)));
  const files = shown.filter(({ isFolder }) => !isFolder).map(({ path }) => path);
  const table = shown.map(({ source, path }) => {
    const options = path.startsWith("/dev/") ? "bind" : `rbind,ro,${SAFE}`;
    return `${tableWord(source)} ${tableWord(mountPoint + path)} none ${options} 0 0`;
  });
  const links = plan.files.flatMap((file) =>
    file.type === "link" ? [`ln -s ${quoted(file.target)} .${file.path}`] : [],
  );
  return `
set -eu
mount -t tmpfs -o size=16m,mode=755,${SAFE} tmpfs ${quoted(mountPoint)}
cd ${quoted(mountPoint)}
mkdir .${SCRATCH_FOLDER}
mount -t tmpfs -o size=${plan.limits.scratchBytes},mode=1777,${SAFE} tmpfs .${SCRATCH_FOLDER}
mkdir -p ${[...new Set(folders), "/proc", "/dev/shm", "/.old"].map((path) => quoted(`.${path}`)).join(" ")}
touch ${files.map((path) => quoted(`.${path}`)).join(" ")}
${links.join("\n")}
ln -s /proc/self/fd dev/fd
cat > .table <<'TABLE'
${table.join("\n")}
TABLE
mount -a -T .table
rm .table
${plan.hasProc ? `mount -t proc -o ${SAFE},noexec proc proc` : ""}
mount -t tmpfs -o size=64m,mode=1777,${SAFE},noexec tmpfs dev/shm
${plan.shared.map((mount) => sharedCommand(mount, plan.emptyFile)).join("\n")}
${extra.map(({ source, path }) => `touch ${quoted(`.${path}`)}; mount --bind -o ro ${quoted(source)} ${quoted(`.${path}`)}`).join("\n")}
${ownFiles === undefined ? "" : `mkdir -p .${FILES_FOLDER}; mount --bind -o ${SAFE} ${quoted(ownFiles)} .${FILES_FOLDER}`}
${plan.sharesNetwork ? "" : LOOPBACK_UP}
pivot_root . .old
umount -l /.old
rmdir /.old
mount -o remount,bind,ro /
exec setpriv --no-new-privs --bounding-set=-all --inh-caps=-all -- /bin/sh -c ${quoted(FIRST_PROCESS)} sh ${quoted(START_SCRIPT)} "$@"
`;
}

/**
 * The first process of the sandbox: it waits for the program and gives its exit status. As the first process the program itself
 * would not end by signals, and nothing would wait for processes that others left. What the shell says of a signal is dropped.
 */
const FIRST_PROCESS = `
start=$1; shift
exec 9>&2 2>/dev/null
(exec /bin/sh -c "$start" sh "$@" 2>&9 9>&-)
exit $?
`;

function sharedCommand({ access, path, isFolder }: SharedMount, emptyFile: string): string {
  const inside = quoted(`.${path}`);
  if (access === "hide") {
    return isFolder
      ? `mount -t tmpfs -o ro,size=4k,mode=755,${SAFE} tmpfs ${inside}`
      : `mount --bind -o ro,${SAFE} ${quoted(emptyFile)} ${inside}`;
  }
  const make = isFolder ? `mkdir -p ${inside}` : "";
  return `${make}\nmount -o rbind,${access === "read" ? "ro," : ""}${SAFE} ${quoted(path)} ${inside}`;
}

/** Without it nothing within can reach the guarded proxy. iproute2 has no part in util-linux, but is nearly everywhere. */
const LOOPBACK_UP = "ip link set lo up 2>/dev/null || ifconfig lo up 2>/dev/null || true";

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** A field of a mount table: blanks and backslashes as octal numbers (fstab(5)). */
function tableWord(text: string): string {
  return text.replace(/[\s\\]/g, (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, "0")}`);
}
