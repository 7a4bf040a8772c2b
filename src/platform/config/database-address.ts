import { FlowError } from "../../schema/words/errors.ts";

/** How a connection is secured (libpq's `sslmode`). */
export type SslMode = (typeof SSL_MODES)[number];

/** A host and its port, or the file of a unix socket. */
export type DatabasePlace = { host: string; port: number } | { path: string };

/** Where a PostgreSQL is, and how it is spoken to: what an address `postgres://…` says. */
export interface DatabaseAddress {
  /** One or more; they are tried in this order. */
  places: readonly DatabasePlace[];
  user: string | undefined;
  password: string | undefined;
  /** Default: the user's name. */
  database: string | undefined;
  sslMode: SslMode;
  /** File of the authorities (PEM) that may have signed the server's certificate. Default: those that Node knows. */
  rootCertificate: string | undefined;
  /** Files (PEM) of the client's own certificate and its key. */
  certificate: string | undefined;
  key: string | undefined;
  /** Which of several servers is wanted, such as `read-write`. */
  targetSession: string | undefined;
  /** What else the address asks of the session, such as `application_name`. */
  parameters: Readonly<Record<string, string>>;
}

const SSL_MODES = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] as const;
const PORT = 5_432;

/** Parameters of libpq that are for a client alone, and mean nothing to this one: a server would refuse them. */
const FOR_CLIENTS =
  /^(channel_binding|connect_timeout|fallback_application_name|gss.*|hostaddr|keepalives.*|krbsrvname|load_balance_hosts|passfile|pgbouncer|pool_timeout|require_auth|requiressl|service|ssl_m.._protocol_version|sslcompression|sslcrl.*|sslnegotiation|sslsni|tcp_user_timeout)$/;

const SHAPE = /^postgres(?:ql)?:\/\/(?:([^/?#]*)@)?([^@/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/i;

/**
 * Reads `postgres://user:password@host:5432/database?sslmode=verify-full&sslrootcert=/etc/ca.pem`. As in libpq there may be
 * several hosts, comma-separated, and `?host=/run/postgresql` names the folder of a unix socket.
 *
 * Throws `FlowError` INVALID_SETTING that begins with `name`, without the text: it may hold a password.
 */
export function parseDatabaseUrl(text: string, name = "The database's address"): DatabaseAddress {
  const refuse = (why: string): never => {
    throw new FlowError("INVALID_SETTING", `${name} ${why}`);
  };
  const [, account, hosts = "", path = "", query = ""] = SHAPE.exec(text) ?? refuse(FORM);
  const given = new URLSearchParams(query);
  const take = (name: string) => {
    const value = given.get(name);
    given.delete(name);
    return value === null || value === "" ? undefined : value;
  };
  const [user, password] = accountOf(account);
  const placesText = take("host") ?? decoded(hosts);
  const address = {
    places: placesOf(placesText, take("port"), refuse),
    user: take("user") ?? user,
    password: take("password") ?? password,
    database: take("dbname") ?? (path === "" ? undefined : decoded(path)),
    rootCertificate: take("sslrootcert"),
    certificate: take("sslcert"),
    key: take("sslkey"),
    targetSession: take("target_session_attrs"),
  };
  const sslMode = sslModeOf(take("sslmode"), address.rootCertificate, refuse);
  if ((address.certificate === undefined) !== (address.key === undefined))
    refuse("names one of sslcert and sslkey: a client's certificate is of use with its key alone");
  const parameters = Object.fromEntries([...given].filter(([name]) => !FOR_CLIENTS.test(name)));
  return { ...address, sslMode, parameters };
}

/** `host:port/database`, for people. */
export function describeAddress({ places, database, user }: DatabaseAddress): string {
  const where = places.map((place) => ("path" in place ? place.path : hostAndPort(place)));
  return `${where.join(",")}/${database ?? user ?? ""}`;
}

/** `host:port` as it is written in an address. */
export function hostAndPort({ host, port }: { host: string; port: number }): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

const FORM = "must look like postgres://user:password@host:5432/database";

type Refuse = (why: string) => never;

function accountOf(text: string | undefined): [string | undefined, string | undefined] {
  if (text === undefined || text === "") return [undefined, undefined];
  const [, user = "", password] = /^([^:]*)(?::(.*))?$/s.exec(text) ?? [];
  return [user === "" ? undefined : decoded(user), password === undefined ? undefined : decoded(password)];
}

/** A sign `%` that begins no escape is itself. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function placesOf(text: string, ports: string | undefined, refuse: Refuse): DatabasePlace[] {
  const portList = ports?.split(",") ?? [];
  return (text === "" ? "localhost" : text).split(",").map((one, index) => {
    const common = portList.length === 1 ? portList[0] : portList[index];
    if (one.startsWith("/")) return { path: `${one.replace(/\/+$/, "")}/.s.PGSQL.${portOf(common, refuse)}` };
    const [, bracketed, plain = "", own] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d*))?$/.exec(one) ?? refuse(FORM);
    const host = bracketed ?? plain;
    return { host: host === "" ? "localhost" : host, port: portOf(own === "" ? common : (own ?? common), refuse) };
  });
}

function portOf(text: string | undefined, refuse: Refuse): number {
  const port = text === undefined || text === "" ? PORT : Number(text);
  return Number.isInteger(port) && port >= 1 && port <= 65_535
    ? port
    : refuse("has a port that is no number up to 65535");
}

/** With a named authority the certificate is verified against it alone, as libpq does. */
function sslModeOf(text: string | undefined, rootCertificate: string | undefined, refuse: Refuse): SslMode {
  const mode = SSL_MODES.find((one) => one === text?.toLowerCase());
  if (text !== undefined && mode === undefined)
    refuse(`has an unknown sslmode; it must be one of ${SSL_MODES.join(", ")}`);
  if (mode === undefined) return rootCertificate === undefined ? "disable" : "verify-full";
  return mode === "require" && rootCertificate !== undefined ? "verify-ca" : mode;
}
