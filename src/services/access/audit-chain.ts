import { createHash } from "node:crypto";
import {
  type ChainEnds,
  type ChainedRow,
  findChainHash,
  findUnchained,
  readChain,
} from "../../repositories/access/audit-chain.ts";
import type { Database } from "../../repositories/database/database.ts";

/** A place in a chain, and the hash of the row there. */
export interface ChainPlace {
  chain: number;
  seq: number;
  hash: string;
}

/** What is wrong with the audit log at one place. */
export interface ChainProblem {
  kind: "changed" | "missing" | "reordered" | "unchained";
  chain: number | null;
  /** The place; of rows that are missing, the first. */
  seq: number | null;
  /** Of a row that is there. */
  auditId: string | null;
  message: string;
}

/** What one call has checked. */
export interface ChainCheck {
  /** Rows that were checked. */
  rows: number;
  /** Rows of older versions of flow, in no chain; only on the first call. */
  before: number;
  problems: ChainProblem[];
  /** The end of each chain that has rows. Kept elsewhere, they show later that the log was not made anew. */
  heads: ChainPlace[];
  /** Where to go on; undefined at the end. */
  next: ChainPlace | undefined;
}

/** Rows that one call checks: some 100 ms. */
export const CHECKED_MAX = 5_000;
/** Problems that one call names. */
const PROBLEMS_MAX = 100;

/**
 * Verifies the audit log from `after` on, {@link CHECKED_MAX} rows at a time: each row has the hash of its content and of the row
 * before, no place is missing, and the chains end where they should. `heads`, from an earlier call, must still be in it.
 */
export function verifyAudit(
  database: Database,
): (request: { after?: ChainPlace; heads?: readonly ChainPlace[] }) => Promise<ChainCheck> {
  return async ({ after, heads = [] }) => {
    let place: ChainPlace = after ?? { chain: 1, seq: 0, hash: "" };
    const problems: ChainProblem[] = [];
    let rows = 0;
    for (;;) {
      const { chain } = place;
      const piece = await readChain(database, { chain, after: place.seq, limit: CHECKED_MAX - rows });
      const ends = piece.ends.find((one) => one.chain === chain);
      const isLast = piece.rows.length < CHECKED_MAX - rows;
      if (ends !== undefined) problems.push(...checkPiece(place, ends, piece.rows, isLast));
      rows += piece.rows.length;
      const next = isLast ? nextChain(piece.ends, chain) : endOf(place, piece.rows);
      if (next !== undefined && rows < CHECKED_MAX) {
        place = next;
        continue;
      }
      const first = after === undefined ? await checkOnce(database, heads, piece.ends) : NOTHING;
      return {
        rows,
        before: first.before,
        problems: [...first.problems, ...problems].slice(0, PROBLEMS_MAX),
        heads: piece.ends.filter(({ lastSeq }) => lastSeq > 0).map(headOf),
        next,
      };
    }
  };
}

const NOTHING = { before: 0, problems: [] as ChainProblem[] };

/** What is checked by the first call alone: rows in no chain, and the ends that the caller has kept. */
async function checkOnce(database: Database, heads: readonly ChainPlace[], ends: readonly ChainEnds[]) {
  const { before, later } = await findUnchained(database, PROBLEMS_MAX);
  const problems = later.map((auditId) =>
    problem("unchained", { auditId }, `row ${auditId} is in no chain: it was added past the trigger`),
  );
  for (const { chain, seq, hash } of heads) {
    const now = ends.find((one) => one.chain === chain);
    if (now === undefined || seq > now.lastSeq) {
      problems.push(problem("missing", { chain, seq }, `chain ${chain} ended at ${seq} before, and is shorter now`));
    } else if (seq >= now.firstSeq && (await findChainHash(database, chain, seq)) !== hash) {
      const why = "its hash is not the one that was noted before: the chain was written anew";
      problems.push(problem("changed", { chain, seq }, `row ${seq} of chain ${chain}: ${why}`));
    }
  }
  return { before, problems };
}

/** The problems of rows that follow on `before` in their chain. `isLast`: the chain ends with them. */
export function checkPiece(
  before: ChainPlace,
  ends: ChainEnds,
  rows: readonly ChainedRow[],
  isLast: boolean,
): ChainProblem[] {
  const { chain } = ends;
  const problems: ChainProblem[] = [];
  // Rows before `firstSeq` were deleted when they were old enough.
  let last: { seq: number; hash: string | undefined } = {
    seq: Math.max(before.seq, ends.firstSeq - 1),
    hash: before.seq >= ends.firstSeq ? before.hash : undefined,
  };
  if (ends.firstSeq === 1 && before.seq === 0) last.hash = "0".repeat(64);
  const changed = new Set(rows.filter((row) => !isHashOf(row.hash, row.parts)));
  for (const row of rows) {
    const { seq, auditId } = row;
    if (seq > last.seq + 1) problems.push(missing(chain, last.seq + 1, seq - 1));
    const from = changed.has(row) ? cameFrom(row, changed) : undefined;
    const place = `row ${auditId} (chain ${chain}, place ${seq})`;
    if (from !== undefined) problems.push(problem("reordered", row, `${place} was written at place ${from}`, chain));
    else if (changed.has(row)) problems.push(problem("changed", row, `${place} is not as it was written`, chain));
    else if (seq === last.seq + 1 && last.hash !== undefined && row.previousHash !== last.hash) {
      problems.push(problem("changed", row, `${place} does not follow the row before it, which is another one`, chain));
    }
    // What follows a row that was named already need not be named too.
    last = { seq, hash: changed.has(row) ? undefined : row.hash };
  }
  if (!isLast) return problems;
  if (last.seq < ends.lastSeq) problems.push(missing(chain, last.seq + 1, ends.lastSeq));
  else if (last.hash !== undefined && last.seq > 0 && (last.seq > ends.lastSeq || last.hash !== ends.lastHash)) {
    const why = "the end that is noted for the chain is another one";
    problems.push(problem("changed", { chain, seq: last.seq }, `row ${last.seq} of chain ${chain}: ${why}`));
  }
  return problems;
}

/** Comparing each changed row with each place takes the square of their number. */
const COMPARED_MAX = 200;

/** The place at which a row was written, if that is one of the other changed rows' places. */
function cameFrom(row: ChainedRow, changed: ReadonlySet<ChainedRow>): number | undefined {
  return [...changed].slice(0, COMPARED_MAX).find(({ seq }) => {
    const parts = row.parts.with(SEQ_PART, String(seq));
    return seq !== row.seq && isHashOf(row.hash, parts);
  })?.seq;
}

/** Where {@link ChainedRow.parts} has the place. */
const SEQ_PART = 1;

/** The texts of a row that its hash may be of: as `auth.audit_hash` in the database makes it, and as it did before. */
const TEXTS: readonly ((parts: readonly (string | null)[]) => string)[] = [
  (parts) => parts.map(literal).join(),
  // Each part with its length in bytes.
  (parts) => parts.map((part) => (part === null ? "-" : `${Buffer.byteLength(part)}:${part}`)).join(""),
];

/** As PostgreSQL's `quote_nullable`. */
function literal(part: string | null): string {
  if (part === null) return "NULL";
  const quoted = part.replace(/['\\]/g, "$&$&");
  return part.includes("\\") ? `E'${quoted}'` : `'${quoted}'`;
}

function isHashOf(hash: string, parts: readonly (string | null)[]): boolean {
  return TEXTS.some((textOf) => createHash("sha256").update(textOf(parts)).digest("hex") === hash);
}

function missing(chain: number, from: number, to: number): ChainProblem {
  const what = from === to ? `row ${from} of chain ${chain} is` : `rows ${from} to ${to} of chain ${chain} are`;
  return problem("missing", { chain, seq: from }, `${what} missing`);
}

function problem(
  kind: ChainProblem["kind"],
  at: { seq?: number; auditId?: string; chain?: number },
  message: string,
  chain = at.chain,
): ChainProblem {
  return { kind, chain: chain ?? null, seq: at.seq ?? null, auditId: at.auditId ?? null, message };
}

function headOf({ chain, lastSeq: seq, lastHash: hash }: ChainEnds): ChainPlace {
  return { chain, seq, hash };
}

function endOf({ chain }: ChainPlace, rows: readonly ChainedRow[]): ChainPlace | undefined {
  const last = rows.at(-1);
  return last === undefined ? undefined : { chain, seq: last.seq, hash: last.hash };
}

/** The next chain that has, or should have, rows. */
function nextChain(ends: readonly ChainEnds[], chain: number): ChainPlace | undefined {
  const next = ends.find((one) => one.chain > chain && one.lastSeq > 0);
  return next && { chain: next.chain, seq: 0, hash: "" };
}
