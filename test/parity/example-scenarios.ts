import type { JsonObject } from "../../src/schema/words/json.ts";
import type { Scenario } from "./support/scenario.ts";

/** Addresses that the examples need. */
export interface ExampleServers {
  api: string;
  mcp: string;
  /** Where nothing listens. */
  nobody: string;
  /** The file of orders, for both runtimes the same one. */
  csv: string;
}

/** Every example, the ways in which it fails included. */
export function exampleScenarios({ api, mcp, nobody, csv }: ExampleServers): Scenario[] {
  const example = (
    name: string,
    workload: JsonObject = {},
    settings: Partial<Pick<Scenario, "order" | "ends">> = {},
  ): Scenario => ({
    name: Object.keys(workload).length === 0 ? name : `${name} with ${JSON.stringify(workload)}`,
    path: `examples/${name}`,
    workload: { base_url: api, ...workload },
    order: "total",
    ends: "COMPLETED",
    ...settings,
  });
  const parts = { order: "parts" } as const;
  const fails = { ends: "FAILED" } as const;
  return [
    example("hello", { name: "ada", evening: true }),
    example("route_order"),
    example("route_order", { customer: { tier: "gold" } }),
    example("nested_loops", {}, parts),
    example("parts/region_report"),
    example("python_stats"),
    example("python_stats", { values: [] }),
    example("python_stats", { values: ["one"] }, fails),
    example("shell_artifact"),
    example("shell_artifact", { numbers: 20_000 }),
    example("store_files", {}, parts),
    example("report_files"),
    example("report_files", { total_min: 1_000 }, fails),
    example("paginated_users", { page_size: 10 }),
    example("paginated_users", { base_url: nobody }, fails),
    example("joined_pages", { page_size: 7 }),
    example("flaky_retry", { failures: 2, delay: 0.02 }),
    example("flaky_retry", { failures: 99, delay: 0.01 }),
    example("publish_report"),
    example("publish_report", { channel: "team-dta" }, fails),
    example("await_delivery", { day: "2026-01-30" }),
    example("day_report", { day: "2026-01-30", detail: "rows", signature: "of the supplier" }),
    example("poll_export", { every: 0.05 }),
    example("nightly_report"),
    example("github_push"),
    example("github_push", { message: "release 2.0" }),
    example("await_payment", { patience: 0.1, reminders: 1 }),
    example("release_approval", { patience: 0.1 }),
    example("price_alert"),
    example("price_alert", { limit: 5 }),
    example("compare_quotes", {}, parts),
    example("compare_quotes", { with_east: false, days_max: 5 }, parts),
    example("checkout", { order: "parity" }),
    example("checkout", { amount: 900 }),
    example("keychain"),
    example("keychain", { team: "nobody" }),
    example("parts/tell_people", { title: "Release?", url: "https://flow.example.com/approve/x" }),
    example("parts/charge_card", { order: "parity-2", amount: 5 }),
    example("load_csv", { csv }, parts),
    example("load_csv", { csv: "/there/is/none.csv" }, fails),
    example("mcp_tools", { endpoint: mcp }),
    example("mcp_tools", { endpoint: mcp, tool: "divide" }),
    example("mcp_tools", { endpoint: `${nobody}/mcp` }),
    example("mcp_agent", { endpoint: mcp }),
    example("mcp_agent", { endpoint: mcp, method: "tools/call", tool: "get-sum", arguments: { a: 19, b: 23 } }),
    example("mcp_agent", { endpoint: mcp, method: "tools/call", tool: "divide" }, fails),
  ];
}
