import { type Database, transaction } from "../database/database.ts";

/** Where a chain of the audit log begins and ends. */
export interface ChainEnds {
  chain: number;
  /** Place of the oldest row that retention has left. */
  firstSeq: number;
  /** Place of the newest row; one less than `firstSeq` when there is no row. */
  lastSeq: number;
  /** `hash` of the newest row that was written, which retention may have deleted since. */
  lastHash: string;
}

/** A row as its hash sees it. */
export interface ChainedRow {
  auditId: string;
  at: Date;
  seq: number;
  previousHash: string;
  hash: string;
  /** What is hashed, in order, as text. */
  parts: (string | null)[];
}

/** A piece of a chain, and all chains, as of one moment. */
export interface ChainPiece {
  ends: ChainEnds[];
  rows: ChainedRow[];
}

/** The rows of a chain after a place, at most `limit`, in order. */
export async function readChain(
  database: Database,
  { chain, after, limit }: { chain: number; after: number; limit: number },
): Promise<ChainPiece> {
  // One snapshot: rows that are added or deleted meanwhile would look like a gap.
  return await transaction(
    database,
    async ({ sql }) => {
      const ends = await sql<ChainEnds[]>`
        select chain, first_seq::float8 as "firstSeq", last_seq::float8 as "lastSeq", last_hash as "lastHash"
        from auth.audit_chain order by chain`;
      const rows = await sql<ChainedRow[]>`
        select audit_id as "auditId", at, chain_seq::float8 as seq, previous_hash as "previousHash", hash,
          json_build_array(chain::text, chain_seq::text, previous_hash, audit_id::text,
            (extract(epoch from at) * 1000)::bigint::text, actor_kind, actor, user_id::text, issuer, subject, action, resource,
            rule, result, address, request_id::text, execution_id::text, command_id::text, attempt::text, detail::text) as parts
        from auth.audit_log where chain = ${chain} and chain_seq > ${after}
        order by chain_seq limit ${limit}`;
      return { ends: [...ends], rows: [...rows] };
    },
    "isolation level repeatable read read only",
  );
}

/** Rows without a chain. */
export interface Unchained {
  /** Rows of the versions of flow that had no chains. */
  before: number;
  /** Rows that were added later past the trigger, the first few. */
  later: string[];
}

/** Counts the rows that are in no chain, and names those that should be in one, at most `limit`. */
export async function findUnchained({ sql }: Database, limit: number): Promise<Unchained> {
  const [row] = await sql<Unchained[]>`
    with since as (select coalesce(min(after_audit_id), 0) as id from auth.audit_chain)
    select
      (select count(*)::float8 from auth.audit_log, since where chain is null and audit_id <= since.id) as before,
      array(
        select audit_id::text from auth.audit_log, since where chain is null and audit_id > since.id order by audit_id limit ${limit}
      ) as later`;
  return row ?? { before: 0, later: [] };
}

/** The hash of the row at a place of a chain; undefined without one. */
export async function findChainHash({ sql }: Database, chain: number, seq: number): Promise<string | undefined> {
  const [row] = await sql<{ hash: string }[]>`
    select hash from auth.audit_log where chain = ${chain} and chain_seq = ${seq}`;
  return row?.hash;
}
