import * as v from "valibot";
import type { Clock } from "../ports/clock.ts";
import {
  FAILURE_REMEMBERED_MS,
  type KeychainKey,
  type KeychainLookup,
  type KeychainStore,
  type KeychainWrite,
  type LeaseAnswer,
} from "../ports/keychain.ts";
import { RenewConfig } from "../schema/api/keychain.ts";
import { SecretSchema, secretProblems } from "../schema/rules/secret-schema.ts";
import { FlowError } from "../schema/words/errors.ts";

/** The keychain of one process: as long as it lives, global entries do. */
export interface LocalKeychain extends KeychainStore {
  /** The execution has ended, and with it its local entries, and the shared ones of the tree that it is the top of. */
  ended(executionId: string): void;
}

/** Default lifetimes (interface specification, Limits, Keychain). */
const TTL_SECONDS = { local: 3_600, global: 86_400, shared: 86_400 } as const;

interface Entry extends KeychainWrite {
  expiresAt: number;
  /** The execution with which it ends; undefined: with none. */
  owner: string | undefined;
}

/** The holder of the right to resolve an entry, and the waiters for the outcome. */
interface Lease {
  holder: string;
  until: number;
  waiting: ((answer: LeaseAnswer) => void)[];
}

/**
 * A keychain in memory, with the rules of the server's (interface specification, Scopes and cache keys): a local entry is its
 * execution's alone, a shared one the whole tree's, a global one the playbook's.
 */
export function createLocalKeychain(clock: Clock): LocalKeychain {
  const entries = new Map<string, Entry>();
  const leases = new Map<string, Lease>();
  const failures = new Map<string, { message: string; until: number }>();

  const isLive = (id: string) => clock.now() < (entries.get(id)?.expiresAt ?? 0);
  const end = (id: string, answer: LeaseAnswer) => {
    const lease = leases.get(id);
    leases.delete(id);
    for (const answerWaiter of lease?.waiting ?? []) answerWaiter(answer);
  };
  const heldByAnother = (id: string, holder: string): Lease | undefined => {
    const lease = leases.get(id);
    return lease !== undefined && lease.holder !== holder && clock.now() < lease.until ? lease : undefined;
  };

  return {
    get(key) {
      const entry = entries.get(cacheKey(key));
      if (entry === undefined) return Promise.resolve({ status: "not_found" });
      return Promise.resolve(lookupOf(entry, clock.now()));
    },
    set(key, entry) {
      if (entry.renewConfig !== undefined && !v.is(RenewConfig, entry.renewConfig)) {
        const why =
          "its renew_config describes no request: an 'endpoint' is needed, and what else it has must be of its type";
        return Promise.reject(
          new FlowError("INVALID_INPUT", `The keychain entry '${key.name}' was not stored: ${why}`),
        );
      }
      const problems = problemsOf(entry);
      if (problems.length > 0) return Promise.reject(refused(key, problems));
      const id = cacheKey(key);
      const expiresAt = clock.now() + (entry.ttlSeconds ?? TTL_SECONDS[key.scope]) * 1_000;
      entries.set(id, { ...structuredClone(entry), expiresAt, owner: ownerOf(key) });
      failures.delete(id);
      end(id, { status: "set" });
      return Promise.resolve({ expiresAt });
    },
    async lease(key, { holder, leaseMs, waitMs }) {
      const id = cacheKey(key);
      if (isLive(id)) return { status: "set" };
      const failure = failures.get(id);
      if (failure !== undefined && clock.now() < failure.until) return { status: "failed", message: failure.message };
      const lease = heldByAnother(id, holder);
      if (lease === undefined) {
        // Waiters for an expired holder keep waiting: for this holder now.
        const waiting = leases.get(id)?.waiting ?? [];
        leases.set(id, { holder, until: clock.now() + leaseMs, waiting });
        return { status: "granted" };
      }
      return await waitFor(clock, lease, waitMs);
    },
    fail(key, holder, message) {
      const id = cacheKey(key);
      if (leases.get(id)?.holder === holder) {
        failures.set(id, { message, until: clock.now() + FAILURE_REMEMBERED_MS });
        end(id, { status: "failed", message });
      }
      return Promise.resolve();
    },
    ended(executionId) {
      for (const [id, entry] of entries) if (entry.owner === executionId) entries.delete(id);
      for (const [id, failure] of failures) if (clock.now() >= failure.until) failures.delete(id);
    },
  };
}

function lookupOf(entry: Entry, now: number): KeychainLookup {
  const { data, expiresAt, autoRenew, renewConfig, credentialType, cacheType, schema } = entry;
  if (now < expiresAt) return { status: "success", data: structuredClone(data), expiresAt };
  if (!autoRenew) return { status: "expired", autoRenew, expiredAt: expiresAt };
  const form = { credentialType, cacheType, ...(schema !== undefined && { schema }) };
  const config = renewConfig === undefined ? {} : { renewConfig };
  return { status: "expired", autoRenew, ...config, form, expiredAt: expiresAt };
}

/** The answer of the lease's holder, or `held` after `waitMs`. */
async function waitFor(clock: Clock, lease: Lease, waitMs: number): Promise<LeaseAnswer> {
  const stop = new AbortController();
  const answer = new Promise<LeaseAnswer>((resolve) => {
    lease.waiting.push(resolve);
    const held = () => resolve({ status: "held" });
    clock.sleep(waitMs, stop.signal).then(held, () => undefined);
  });
  try {
    return await answer;
  } finally {
    stop.abort();
  }
}

function cacheKey(key: KeychainKey): string {
  return JSON.stringify([key.name, key.catalogId, key.scope, ownerOf(key)]);
}

/** The execution with which an entry ends; undefined: with none. */
function ownerOf({ scope, executionId, rootExecutionId }: KeychainKey): string | undefined {
  if (scope === "global") return undefined;
  return scope === "local" ? executionId : rootExecutionId;
}

function problemsOf({ schema, data }: KeychainWrite): string[] {
  if (schema === undefined) return [];
  const parsed = v.safeParse(SecretSchema, schema);
  if (!parsed.success) return ["its schema is invalid: fields, required, types and description are expected"];
  return secretProblems(parsed.output, data);
}

function refused({ name }: KeychainKey, problems: readonly string[]): FlowError {
  const message = `The keychain entry '${name}' violates its schema: ${problems.join("; ")}`;
  return new FlowError("INVALID_INPUT", message, {
    detail: { message: "Credential validation failed", errors: [...problems] },
  });
}
