import { existsSync } from "node:fs";
import { join } from "node:path";
import { runProgram } from "../../src/platform/system/run-program.ts";

/** Programs of the peers, with a package file of their own: the product does not depend on what it is compared with. */
export const PEERS = join(import.meta.dirname, "../../../bench/peers");

/** Installs the peers where they are not: about 240 MB, most of it Restate's server. Throws when npm cannot. */
export async function installPeers(log: (line: string) => void): Promise<void> {
  if (existsSync(join(PEERS, "node_modules/.package-lock.json"))) return;
  log("Installing the peers in bench/peers …");
  // Their packages need no install scripts; one of them would report the installation.
  const args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
  const { code, output } = await runProgram("npm", args, { folder: PEERS });
  if (code === 0) return;
  throw new Error(`npm ci in ${PEERS} failed; without the peers: npm run bench -- --no-peers\n${output}`);
}
