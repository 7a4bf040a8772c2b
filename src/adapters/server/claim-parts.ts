import type { Clock } from "../../ports/clock.ts";
import { defined } from "../../schema/words/defined.ts";
import { type CallingClaim, createServerChildren } from "./children.ts";
import { inNameOf, type ServerConnection } from "./connection.ts";
import { createServerCredentials } from "./credentials.ts";
import { createServerKeychain } from "./keychain.ts";
import { type Attaching, createServerResults, type StoringClaim } from "./results.ts";
import { createServerSealing } from "./sealing.ts";

/** What the parts of a worker that ask its server are made of. */
export interface ClaimPartsDeps {
  /** For claims, reports, results and documents; and that on which children are waited for. */
  calls: ServerConnection;
  waits: ServerConnection;
  /** How many calls `waits` has under way at a time. */
  waitConnections: number;
  /** Of the worker. */
  name: string;
  clock: Clock;
  random(): number;
  /** Absent: no result goes with a report. */
  attaching?: Pick<Attaching, "isOn">;
  /** Aborted when the worker has stopped. */
  ending: AbortSignal;
}

/** How long `artifact` tries to read a result. */
const ARTIFACT_MS = 120_000;

/** What a running command asks its server for, each in the name of its claim. */
export function createClaimParts(deps: ClaimPartsDeps) {
  const { calls, waits, waitConnections, name, clock, random, attaching, ending } = deps;
  const server = { connection: calls, clock, random, ...defined({ attaching }) };
  const children = createServerChildren({ ...server, connection: waits, calls, connections: waitConnections });
  const sealersOf = createServerSealing(server, ending);
  const named = (claim: CallingClaim) => ({ ...server, connection: inNameOf(calls, claim.work.secret) });
  return {
    childrenOf: children.of,
    resultsOf: (claim: CallingClaim & StoringClaim) => createServerResults(named(claim), claim, name),
    secretsOf: (claim: CallingClaim & StoringClaim) => ({
      credentials: createServerCredentials(named(claim), ending),
      keychain: createServerKeychain({ ...named(claim), waits: inNameOf(waits, claim.work.secret) }, ending),
      sealers: sealersOf(claim.work),
      stored: {
        load: (ref: string, reader: string) => {
          const reading = { ...claim, signal: AbortSignal.timeout(ARTIFACT_MS) };
          return createServerResults(named(claim), reading, name).load(ref, reader);
        },
      },
    }),
  };
}
