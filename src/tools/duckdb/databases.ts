import { realpath } from "node:fs/promises";
import { basename, dirname, join, resolve, sep } from "node:path";
import type { DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";
import { configurationError } from "../contract/task-config.ts";
import { type Duckdb, loadDuckdb } from "./driver.ts";

/** Calls of the driver at a time. */
const CALLS_MAX = 2;

/** What a DuckDB statement may reach beside its own tables. */
export interface DuckdbAccess {
  /** Folders whose files it may read and write; `all`: every file of this machine. Empty: none, databases are in memory. */
  files: "all" | readonly string[];
  /** Whether it may use the network and load extensions, which no address guard sees. Only with all files. */
  network: boolean;
}

/** What {@link DuckdbDatabases} takes. */
export interface DuckdbDatabasesOptions {
  access: DuckdbAccess;
  /** Memory of one database, as DuckDB writes it (`1GB`). Nothing is moved to disk: what does not fit is an error. */
  memory: string;
  /** Most in-memory databases kept at a time. Those used longest ago go first. */
  databasesMax: number;
  /** An in-memory database that was not used for so many milliseconds is dropped. */
  idleMs: number;
  /** For tests: loads the driver. */
  load?: () => Promise<Duckdb>;
}

/** A connection to a database, for one task. */
export interface DuckdbLease {
  driver: Duckdb;
  connection: DuckDBConnection;
  /** True for an in-memory database that was made for this loan: it has no tables yet. */
  isNew: boolean;
  /** Nothing may run on the connection any more. */
  release(): void;
  /**
   * Makes a call of the driver when it is its turn. Calls run on Node's pool of four threads, which looks up names and
   * reads files too: two of them are left for that. Throws the signal's reason when it is aborted before its turn.
   */
  turn<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T>;
}

/**
 * The open databases of this process: one in memory for each execution, and files. A file is closed with its last loan,
 * because DuckDB locks it for one process and another worker may be next. Its class holds them and their timers.
 */
export class DuckdbDatabases {
  readonly #options: DuckdbDatabasesOptions;
  /** By key, least recently used first. */
  readonly #open = new Map<string, Database>();
  readonly #turns = new DuckdbSemaphore(CALLS_MAX);
  #closed = false;

  constructor(options: DuckdbDatabasesOptions) {
    this.#options = options;
  }

  /**
   * A connection to `database`: a path of a file, or `:memory:` and undefined for the execution's own. Throws FlowError
   * `INVALID_INPUT` for a file that may not be opened, `NOT_FOUND` without the driver, and what the driver throws.
   */
  async lend(executionId: string, database: string | undefined): Promise<DuckdbLease> {
    const driver = await loadDuckdb(this.#options.load);
    const inMemory = database === undefined || database === ":memory:";
    const path = inMemory ? undefined : await this.#confined(database);
    if (this.#closed) throw new Error("this program is shutting down");
    const key = path ?? `:memory:${executionId}`;
    const known = this.#open.get(key);
    const entry: Database = known ?? { loans: 0, path, opening: this.#create(driver, path), timer: undefined };
    // Put last: the map is in the order of use.
    this.#open.delete(key);
    this.#open.set(key, entry);
    clearTimeout(entry.timer);
    entry.loans += 1;
    try {
      if (known === undefined) this.#evict();
      entry.instance ??= await entry.opening;
      const connection = await entry.instance.connect();
      const release = () => {
        connection.closeSync();
        this.#giveBack(key, entry);
      };
      const turn = <T>(call: () => Promise<T>, signal: AbortSignal) => this.#turns.take(call, signal);
      return { driver, connection, isNew: known === undefined && path === undefined, release, turn };
    } catch (error) {
      this.#giveBack(key, entry, entry.instance === undefined);
      throw error;
    }
  }

  /** Closes every database that no task uses; those in use are closed when they are given back. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.allSettled([...this.#open.values()].map(({ opening }) => opening));
    for (const [key, entry] of [...this.#open]) if (entry.loans === 0) this.#drop(key, entry);
  }

  async #create(driver: Duckdb, path: string | undefined): Promise<DuckDBInstance> {
    const { access, memory } = this.#options;
    const instance = await driver.DuckDBInstance.create(path ?? ":memory:", {
      memory_limit: memory,
      temp_directory: "",
      // Never fetches code by itself; where the network is open, a task may say `install` and `load`.
      autoinstall_known_extensions: "false",
      autoload_known_extensions: "false",
    });
    const connection = await instance.connect();
    try {
      await connection.run("set timezone = 'UTC'");
      if (!access.network) {
        const folders = access.files === "all" ? ["/"] : await spellings(access.files);
        await connection.run(`set allowed_directories = [${folders.map(quoteText).join(", ")}]`);
        await connection.run("set enable_external_access = false");
        // Without this a task could give itself more memory.
        await connection.run("set lock_configuration = true");
      }
      return instance;
    } catch (error) {
      instance.closeSync();
      throw error;
    } finally {
      connection.closeSync();
    }
  }

  /** The absolute path of a database's file, links followed, within the folders that are allowed. */
  async #confined(database: string): Promise<string> {
    const { files } = this.#options.access;
    const wanted = resolve(database);
    if (files === "all") return wanted;
    const folder = await realpath(dirname(wanted)).catch(() => undefined);
    const path = folder === undefined ? wanted : await realpath(wanted).catch(() => join(folder, basename(wanted)));
    const allowed = await existing(files);
    if (allowed.some((parent) => path.startsWith(parent))) return path;
    const where =
      allowed.length === 0 ? "no folder is" : `only ${allowed.join(", ")} ${allowed.length === 1 ? "is" : "are"}`;
    throw configurationError(
      `The DuckDB database "${database}" is not in a folder that tasks may use here: ${where} named by ` +
        'FLOW_DUCKDB_FILES. Leave "database" out for one in memory.',
    );
  }

  #giveBack(key: string, entry: Database, broken = false): void {
    entry.loans -= 1;
    if (entry.loans > 0) return;
    if (broken || this.#closed || entry.path !== undefined) {
      this.#drop(key, entry);
      return;
    }
    entry.timer = setTimeout(() => this.#drop(key, entry), this.#options.idleMs);
    entry.timer.unref();
  }

  #evict(): void {
    const idle = [...this.#open].filter(([, { path, loans }]) => path === undefined && loans === 0);
    const inMemory = [...this.#open.values()].filter(({ path }) => path === undefined).length;
    for (const [key, entry] of idle.slice(0, Math.max(0, inMemory - this.#options.databasesMax)))
      this.#drop(key, entry);
  }

  #drop(key: string, entry: Database): void {
    clearTimeout(entry.timer);
    if (this.#open.get(key) === entry) this.#open.delete(key);
    // At once: the next loan of a file may be waiting for its lock. Without an instance it did not open.
    entry.instance?.closeSync();
  }
}

interface Database {
  loans: number;
  /** Undefined: in memory. */
  path: string | undefined;
  opening: Promise<DuckDBInstance>;
  instance?: DuckDBInstance;
  timer: NodeJS.Timeout | undefined;
}

/** The allowed folders that exist, as real paths that end in a separator. */
async function existing(folders: readonly string[]): Promise<string[]> {
  const paths = await Promise.all(folders.map((folder) => realpath(folder).catch(() => undefined)));
  return paths.filter((path) => path !== undefined).map((path) => (path.endsWith(sep) ? path : path + sep));
}

/** The same, and the folders as they were given: DuckDB compares texts, and statements may name a folder by its link. */
async function spellings(folders: readonly string[]): Promise<string[]> {
  const given = folders.map((folder) => resolve(folder)).map((path) => (path.endsWith(sep) ? path : path + sep));
  return [...new Set([...given, ...(await existing(folders))])];
}

function quoteText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** Lets so many calls run at a time, in the order in which they came. Holds those that wait. */
export class DuckdbSemaphore {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(callsMax: number) {
    this.#free = callsMax;
  }

  /** The result of `call`, when its turn has come. Throws the signal's reason when it is aborted before that. */
  async take<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#wait(signal);
    try {
      return await call();
    } finally {
      // The turn goes to the next that waits without becoming free between.
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }

  #wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#waiting.splice(this.#waiting.indexOf(begin), 1);
        reject(signal.reason);
      };
      const begin = () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      this.#waiting.push(begin);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }
}
