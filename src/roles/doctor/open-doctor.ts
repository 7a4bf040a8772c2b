import { join, resolve } from "node:path";
import { openDoctorServer } from "../../adapters/server/doctor-server.ts";
import { parseServerUrl } from "../../platform/config/address.ts";
import type { Config } from "../../platform/config/config.ts";
import { withAuthorities } from "../../platform/config/database.ts";
import { openKeyRing } from "../../platform/crypto/key-ring-source.ts";
import type { Secret } from "../../platform/crypto/secret.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { createDoctor, type Doctor } from "../../services/diagnosis/doctor.ts";
import { diskRoom } from "../telemetry/disk-room.ts";
import { openDoctorDatabase } from "./doctor-database.ts";

/** The doctor's own server, and what it may say to it. */
export interface DoctorHome {
  url: string;
  token?: Secret | undefined;
}

type DoctorConfig = Pick<
  Config,
  "databaseUrl" | "databaseCa" | "brokerUrl" | "encryptionKeys" | "encryptionKeysFile" | "home" | "reaperHardTimeoutMs"
>;

/** Time for one attempt to reach the broker. */
const BROKER_MS = 3_000;

/**
 * A doctor with these settings: its own server is `home`, its own database FLOW_DATABASE_URL, its broker BROKER_URL. The token
 * is sent only to its own server.
 */
export async function openDoctor(config: DoctorConfig, home: DoctorHome, folder: string): Promise<Doctor> {
  const keyIds = await keysOf(config);
  const { brokerUrl } = config;
  const own = config.databaseUrl && withAuthorities(config.databaseUrl, config.databaseCa);
  const data = join(resolve(folder, config.home), "postgres");
  return createDoctor({
    now: Date.now,
    openServer(givenUrl) {
      const url = givenUrl === undefined ? home.url : serverUrl(givenUrl);
      return openDoctorServer(url, url === home.url ? home.token : undefined);
    },
    openDatabase(dsn = own) {
      if (dsn === undefined) return undefined;
      // The keys belong to the doctor's own database; those of another database are unknown.
      const isOwn = own === undefined || dsn === own;
      const limits = { hardTimeoutMs: config.reaperHardTimeoutMs };
      return openDoctorDatabase(dsn, { keyIds: isOwn ? keyIds : undefined, disk: () => diskRoom(data), limits });
    },
    ...(brokerUrl !== undefined && { pingBroker: () => pingBroker(brokerUrl) }),
  });
}

function serverUrl(givenUrl: string): string {
  try {
    return parseServerUrl("server_url", givenUrl);
  } catch (error) {
    throw new FlowError("INVALID_INPUT", messageOf(error), { cause: error });
  }
}

/** Ids of the keys of a server with these settings; undefined if the doctor has no keys. */
async function keysOf({ encryptionKeys, encryptionKeysFile }: DoctorConfig) {
  if (encryptionKeys === undefined && encryptionKeysFile === undefined) return undefined;
  const ring = await openKeyRing({ encryptionKeys, encryptionKeysFile, keyFolder: undefined, log: () => undefined });
  return ring.ids;
}

/** The driver is loaded only where there is a broker. */
async function pingBroker(url: Secret): Promise<void> {
  const { pingNats } = await import("../../adapters/nats/ping.ts");
  await pingNats(url, BROKER_MS);
}
