/** What the catalog holds. */
export const KINDS = [
  { kind: "playbook", title: "playbooks", one: "playbook" },
  { kind: "agent", title: "agents", one: "agent" },
  { kind: "mcp", title: "MCP servers", one: "MCP server" },
  { kind: "trigger", title: "triggers", one: "trigger" },
] as const;

/** What one of a kind is called. */
export function kindText(kind: (typeof KINDS)[number]["kind"]): string {
  return KINDS.find((one) => one.kind === kind)?.one ?? kind;
}
