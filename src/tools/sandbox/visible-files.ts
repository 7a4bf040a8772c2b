import { lstatSync, readlinkSync, realpathSync, statSync } from "node:fs";
import { isAbsolute } from "node:path";
import { isWithin } from "./shared-folder.ts";

/** One thing of the machine's file system that a sandbox shows, for reading only. */
export type VisibleFile =
  | { type: "folder" | "file"; path: string; source: string }
  /** A link of the top folder, such as `/bin` to `usr/bin`. */
  | { type: "link"; path: string; target: string };

/** Folders with programs and libraries. */
const SYSTEM_FOLDERS = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"];

/**
 * What programs need of /etc: users' names, how hosts are found, certificates (no private keys), time zone, the linker's
 * cache. Nothing else, as many services keep their passwords there.
 */
const SYSTEM_SETTINGS = [
  "alternatives",
  "ca-certificates.conf",
  "crypto-policies",
  "gai.conf",
  "group",
  "host.conf",
  "hosts",
  "ld.so.cache",
  "ld.so.conf",
  "ld.so.conf.d",
  "localtime",
  "magic",
  "mime.types",
  "nsswitch.conf",
  "os-release",
  "passwd",
  "pki/ca-trust",
  "pki/tls/certs",
  "pki/tls/openssl.cnf",
  "protocols",
  "resolv.conf",
  "services",
  "ssl/cert.pem",
  "ssl/certs",
  "ssl/openssl.cnf",
  "terminfo",
  "timezone",
].map((name) => `/etc/${name}`);

/**
 * The files that a sandbox shows: those of the system, and `readable`, which are folders or files of the operator's choice.
 * What is absent is left out.
 */
export function visibleFiles(readable: readonly string[]): VisibleFile[] {
  const shown: VisibleFile[] = [];
  for (const path of [...SYSTEM_FOLDERS, ...SYSTEM_SETTINGS, ...readable.filter(isAbsolute)]) {
    const isCovered = shown.some((other) => other.type === "folder" && isWithin(other.path, path));
    const entry = isCovered ? undefined : entryAt(path);
    if (entry !== undefined) shown.push(entry);
  }
  return shown;
}

function entryAt(path: string): VisibleFile | undefined {
  try {
    const isSystemLink = SYSTEM_FOLDERS.includes(path) && lstatSync(path).isSymbolicLink();
    if (isSystemLink) return { type: "link", path, target: readlinkSync(path) };
    // A mount follows the link to what it leads to, which may lie in a folder that is not shown.
    const source = realpathSync(path);
    return { type: statSync(source).isDirectory() ? "folder" : "file", path, source };
  } catch {
    return undefined;
  }
}
