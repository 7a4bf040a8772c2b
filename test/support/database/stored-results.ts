import type { Api, Body } from "../service/api.ts";
import { type Answering, type Claimed, type Work, workWith } from "../service/api-work.ts";

/** What tests do with stored results over the API, as a worker. */
export interface StoredResults {
  work: Work;
  /** Starts a playbook and claims its first command. */
  claimed(path: string): Promise<Claimed>;
  /** A reference of the command's step. */
  refOf(command: Claimed, run?: string): string;
  /** Stores a text for a claim. */
  put(command: Claimed, body: string, more?: Record<string, string>): Promise<{ status: number; body: Body }>;
  /** What stands behind a reference. */
  get(ref: string, headers?: Record<string, string>): Promise<Response>;
  /** The status of {@link get}. */
  statusOf(ref: string): Promise<number>;
  /** Rows of an execution's results, whatever their state. */
  rowsOf(executionId: string): Promise<{ ref: string; state: string; scope: string; store: string }[]>;
}

/** Over an open API. */
export function storedResults(api: Answering & Pick<Api, "database">): StoredResults {
  const work = workWith(api);
  const refOf = ({ execution_id, step }: Claimed, run = "1") =>
    `noetl://execution/${execution_id}/step/${step}/task/t/run/${run}`;
  const get = async (ref: string, headers: Record<string, string> = {}) =>
    api.open.request(`/results/resolve?${new URLSearchParams({ ref })}`, { headers });
  return {
    work,
    async claimed(path) {
      const id = await work.execute(path);
      for (;;) {
        const found = (await work.claim("w", 100)).find(({ execution_id }) => execution_id === id);
        if (found !== undefined) return found;
      }
    },
    refOf,
    async put(command, body, more = {}) {
      const { command_id, attempt } = command;
      const query = new URLSearchParams({
        ref: refOf(command),
        worker: "w",
        command_id,
        attempt: String(attempt),
        ...more,
      });
      const response = await api.open.request(`/api/results?${query}`, { method: "PUT", body });
      return { status: response.status, body: (await response.json()) as Body };
    },
    get,
    async statusOf(ref) {
      const response = await get(ref);
      await response.arrayBuffer();
      return response.status;
    },
    async rowsOf(executionId) {
      const rows = await api.database.sql<{ ref: string; state: string; scope: string; store: string }[]>`
        select ref, state, scope, store from flow.result where execution_id = ${executionId} order by ref, writing`;
      return rows.map((row) => ({ ...row }));
    },
  };
}
