/** Where NATS is, and as whom. */
export interface NatsAddress {
  /** `host:port` of each server. */
  servers: string[];
  /** User and password, or a token, or nothing; encryption. As the driver takes them. */
  options: NatsIdentity & { tls?: Record<string, never> };
}

/** A client's login to NATS. */
interface NatsIdentity {
  user?: string;
  pass?: string;
  token?: string;
}

const DEFAULT_PORT = "4222";

/**
 * Reads `BROKER_URL`: `nats://user:password@host:4222`, `nats://token@host`, or `tls://…` for encryption; several servers of a
 * cluster, comma-separated, with the user in the first. The driver itself reads no user from an address.
 */
export function parseNatsAddress(url: string): NatsAddress {
  const urls = url.split(",").map((part) => new URL(part.trim()));
  const servers = urls.map(({ hostname, port }) => `${hostname}:${port === "" ? DEFAULT_PORT : port}`);
  const known = urls.find(({ username }) => username !== "");
  const tls = urls.some(({ protocol }) => protocol === "tls:") ? { tls: {} } : {};
  return { servers, options: { ...tls, ...identity(known) } };
}

function identity(url: URL | undefined): NatsIdentity {
  if (url === undefined) return {};
  const name = decode(url.username);
  return url.password === "" ? { token: name } : { user: name, pass: decode(url.password) };
}

/** A lone `%` stands for itself. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
