import { type ReactNode, useMemo } from "react";
import { useAllowed } from "../parts/allowed.ts";
import { serverStart } from "./call-agent.ts";
import { Console } from "./console.tsx";
import type { PastCall } from "./history.ts";

/** Lists, inspects and calls what an MCP server of the catalog offers, without an agent. Each call is an execution under its path. */
export function Inspector({
  path,
  tool,
  repeated,
  onTool,
  onEnd,
}: {
  path: string;
  /** The chosen tool, resource or prompt. */
  tool: string | undefined;
  /** An earlier call, with whose arguments the form begins. */
  repeated: PastCall | undefined;
  onTool(name: string | undefined): void;
  /** A call has ended. */
  onEnd(): void;
}): ReactNode {
  const may = useAllowed("execute", { path });
  const target = useMemo(
    () => ({ id: "server", agent: "", server: path, start: serverStart(path), inputs: {} }),
    [path],
  );
  return (
    <Console
      key={`${path} ${repeated?.executionId}`}
      {...{ target, may, repeated, onEnd }}
      isWaiting={false}
      chosen={tool}
      onChoose={onTool}
    />
  );
}
