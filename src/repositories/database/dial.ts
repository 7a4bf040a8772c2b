import { readFileSync } from "node:fs";
import { connect, isIP, type Socket } from "node:net";
import { Duplex } from "node:stream";
import { type ConnectionOptions, checkServerIdentity, connect as connectTls, rootCertificates } from "node:tls";
import { type DatabaseAddress, type DatabasePlace, hostAndPort } from "../../platform/config/database-address.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";

/** Code of an error: the database is there, and the two do not agree on how the connection is secured. */
export const NOT_SECURED = "DATABASE_TLS";

/** Makes connections to a database, encrypted or not as its address says. They are ready for the first message. */
export interface Dialler {
  /** Throws what the network says, or an error with the code {@link NOT_SECURED}. */
  dial(): Promise<Socket>;
  /** The server that answered last is not the wanted one: the next attempt begins with the server after it. */
  next(): void;
}

/** "Is this encrypted?", in the protocol's first message (PostgreSQL, Frontend/Backend Protocol, SSLRequest). */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);
const YES = 0x53;

/**
 * A dialler for an address. The driver (postgres 3.4) could connect by itself, but it checks the certificate of a server given
 * by IP address against `localhost`, supports neither `verify-ca` nor certificate files, waits for ever if all listed hosts are
 * down, and offers no way to end a silent connection. `connectMs` limits each attempt. Throws `FlowError` INVALID_SETTING for a
 * certificate file that cannot be read.
 */
export function createDialler(address: DatabaseAddress, connectMs: number): Dialler {
  const secured = readTls(address);
  let first = 0;
  return {
    next: () => {
      first += 1;
    },
    async dial() {
      let failure: unknown;
      for (let index = 0; index < address.places.length; index += 1) {
        const place = address.places[(first + index) % address.places.length];
        if (place === undefined) break;
        try {
          const socket = await open(place, address, secured, connectMs);
          first += index;
          return socket;
        } catch (error) {
          // The first one says most: the others may be there for another case.
          failure ??= error;
        }
      }
      throw failure;
    },
  };
}

/** A connection that could not be made, in the form that the driver takes: its first message fails with the reason. */
export function failedSocket(reason: Error): Duplex {
  return new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done(reason) });
}

async function open(
  place: DatabasePlace,
  address: DatabaseAddress,
  secured: ConnectionOptions,
  connectMs: number,
): Promise<Socket> {
  const socket = connect("path" in place ? place : { ...place, noDelay: true });
  const where = "path" in place ? place.path : hostAndPort(place);
  const timer = setTimeout(() => {
    const message = `${where} did not take the connection within ${connectMs / 1_000} s`;
    socket.destroy(Object.assign(new Error(message), { code: "CONNECT_TIMEOUT" }));
  }, connectMs);
  try {
    await eventOf(socket, "connect");
    // As with libpq: a client that can open the socket file is on this machine.
    if (address.sslMode === "disable" || address.sslMode === "allow" || "path" in place) return socket;
    const isOffered = await askForTls(socket);
    if (isOffered) return await secure(socket, place.host, address, secured);
    if (address.sslMode === "prefer") return socket;
    socket.destroy();
    throw notSecured(`${where} offers no encryption, which sslmode=${address.sslMode} asks for`);
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

async function askForTls(socket: Socket): Promise<boolean> {
  socket.write(SSL_REQUEST);
  const answer = await eventOf<Buffer>(socket, "data");
  // More than one byte came before the encryption began: an attacker in between may have inserted it (CVE-2021-23222).
  if (answer.length > 1) throw notSecured("the server sent something before the connection was encrypted");
  return answer[0] === YES;
}

async function secure(
  socket: Socket,
  host: string,
  { sslMode }: DatabaseAddress,
  secured: ConnectionOptions,
): Promise<Socket> {
  const checks = sslMode === "verify-ca" || sslMode === "verify-full";
  const encrypted = connectTls({
    ...secured,
    socket,
    ...(isIP(host) === 0 && { servername: host }),
    rejectUnauthorized: checks,
    checkServerIdentity: (_name, certificate) =>
      sslMode === "verify-full" ? checkServerIdentity(host, certificate) : undefined,
  });
  try {
    await eventOf(encrypted, "secureConnect");
    return encrypted;
  } catch (error) {
    encrypted.destroy();
    if (isOfNetwork(error)) throw error;
    throw notSecured(whyNotSecured(error));
  }
}

/** Resolves with the event; rejects when the connection fails or ends before it. */
function eventOf<T>(socket: Socket, event: "connect" | "data" | "secureConnect"): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = () => {
      socket.off(event, done).off("error", failed).off("close", closed);
    };
    const done = (value: T) => {
      end();
      resolve(value);
    };
    const failed = (error: Error) => {
      end();
      // Later messages do not matter.
      socket.on("error", () => undefined);
      reject(error);
    };
    const closed = () => failed(Object.assign(new Error("The connection was closed"), { code: "CONNECTION_CLOSED" }));
    socket.once(event, done).once("error", failed).once("close", closed);
  });
}

function isOfNetwork(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" && /^(CONNECT|ECONN|EPIPE|ETIMEDOUT|EHOST|ENET)/.test(code);
}

/** The words of OpenSSL, and what to do about them. */
function whyNotSecured(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const message = messageOf(error);
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID")
    return `its certificate is for another name: ${message}. Use the name that it has, or sslmode=verify-ca`;
  if (code === "CERT_HAS_EXPIRED") return "its certificate has expired: renew it";
  if (/SELF_SIGNED|UNABLE_TO|CERT_UNTRUSTED|CERT_SIGNATURE/.test(code)) {
    const hint = "Name the file of the authority that signed it: sslrootcert in the address, or FLOW_DATABASE_CA";
    return `its certificate is signed by an unknown authority (${message}). ${hint}`;
  }
  if (/CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE|BAD_CERTIFICATE|UNKNOWN_CA/i.test(code))
    return `it does not accept this client's certificate (${message}). Name it with sslcert and sslkey`;
  return `the encryption could not be agreed on: ${message}`;
}

function notSecured(why: string): Error {
  return Object.assign(new Error(why), { code: NOT_SECURED });
}

/** Read once: a pool lasts as long as its process. */
function readTls({ sslMode, rootCertificate, certificate, key }: DatabaseAddress): ConnectionOptions {
  if (sslMode === "disable") return {};
  const read = (file: string, name: string) => {
    try {
      return readFileSync(file);
    } catch (cause) {
      const message = `${name} of the database's address cannot be read: ${messageOf(cause)}`;
      throw new FlowError("INVALID_SETTING", message, { cause });
    }
  };
  const isNamed = rootCertificate !== undefined && rootCertificate !== "system";
  return {
    ...(isNamed && { ca: read(rootCertificate, "sslrootcert") }),
    ...(rootCertificate === "system" && { ca: [...rootCertificates] }),
    ...(certificate !== undefined && { cert: read(certificate, "sslcert") }),
    ...(key !== undefined && { key: read(key, "sslkey") }),
  };
}
