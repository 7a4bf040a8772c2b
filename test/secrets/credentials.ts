import type { TestDatabase } from "../support/database/postgres.ts";
import type { Canaries } from "./canary.ts";

/** The credentials of the playbooks, with a canary in every field that is secret. */
export function credentialsWith({ values, number }: Canaries, database: TestDatabase, origin: string) {
  const { token = "", deep = "", listed = "", password = "", dsn = "", key = "", sensitive = "" } = values;
  return {
    vault: {
      type: "custom",
      data: {
        token,
        deep,
        nested: { list: [listed] },
        dsn: `postgres://joe:${dsn}@db.internal/orders`,
        key: `-----BEGIN KEY-----\n${key}\n-----END KEY-----\n`,
        document: JSON.stringify({ inner: { password } }),
        pin: number,
        sensitive,
      },
    },
    login: { type: "basic", data: { username: "joe", password } },
    oauth: {
      type: "oauth2",
      data: { client_id: "flow", client_secret: deep, token_url: `${origin}/token` },
    },
    database: {
      type: "sqldb",
      data: {
        host: database.host,
        port: database.port,
        user: database.user,
        password: database.password,
        database: database.database,
      },
    },
  };
}
