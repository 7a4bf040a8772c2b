import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { packagePath } from "../../../src/platform/system/package-file.ts";
import type { Database } from "../../../src/repositories/database/database.ts";

/** An account for servers that may add rows to the audit log, and no more. */
export interface ServiceRole {
  name: string;
  /** The database's address, with this account. */
  url: string;
  /** Takes the account away: an account belongs to the whole PostgreSQL server. */
  drop(): Promise<unknown>;
}

/** The account of docs/operations.md, made as it says there, in the database of this address; `owner` owns its tables. */
export async function createServiceRole(owner: Database, url: string): Promise<ServiceRole> {
  const name = `flow_service_${randomBytes(6).toString("hex")}`;
  const address = new URL(url);
  address.username = name;
  address.password = randomBytes(9).toString("hex");
  const page = await readFile(packagePath("docs/operations.md"), "utf8");
  const [, statements = ""] = /An account that cannot change the audit log\n.*?```sql\n(.*?)```/s.exec(page) ?? [];
  assert.match(statements, /CREATE ROLE flow_service/);
  await owner.sql.unsafe(statements.replaceAll("flow_service", name).replace("'…'", `'${address.password}'`));
  return { name, url: address.href, drop: () => owner.sql.unsafe(`drop owned by ${name} cascade; drop role ${name}`) };
}
