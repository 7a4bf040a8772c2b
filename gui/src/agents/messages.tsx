import { ArrowLeft, ArrowRight } from "lucide-react";
import type { ReactNode } from "react";
import { isJsonObject, type Json, type JsonObject } from "../../../src/schema/words/json.ts";
import { isSecret } from "../catalog/run/inputs.ts";
import { JsonView } from "../parts/json/view.tsx";
import type { CallMessage } from "./call-agent.ts";

/** The messages between client and server, as they were sent; values whose names say that they are secret are hidden. */
export function Messages({ messages }: { messages: readonly CallMessage[] }): ReactNode {
  return (
    <details>
      <summary className="quiet">
        {messages.length} JSON-RPC {messages.length === 1 ? "message" : "messages"}
      </summary>
      <ol className="plain-list messages">
        {messages.map(({ from, after_ms, message }, index) => {
          const Sign = from === "client" ? ArrowRight : ArrowLeft;
          return (
            // Messages have no names of their own, and their order does not change.
            // biome-ignore lint/suspicious/noArrayIndexKey: see above
            <li key={index}>
              <details>
                <summary className="row">
                  <Sign className="icon" aria-hidden="true" />
                  <span>{from === "client" ? "Sent" : "Received"}</span>
                  <code className="wrap">{nameOf(message)}</code>
                  <span className="quiet number">after {after_ms} ms</span>
                </summary>
                <JsonView label="Message" value={withHidden(message)} />
              </details>
            </li>
          );
        })}
      </ol>
    </details>
  );
}

/** `tools/call (2)`, `answer to 2`, `error -32602 to 2`. */
function nameOf({ id, method, error }: JsonObject): string {
  if (typeof method === "string") return id === undefined ? method : `${method} (${String(id)})`;
  return isJsonObject(error) ? `error ${String(error["code"])} to ${String(id)}` : `answer to ${String(id)}`;
}

function withHidden(value: Json): Json {
  if (Array.isArray(value)) return value.map(withHidden);
  if (!isJsonObject(value)) return value;
  const entries = Object.entries(value).map(([name, inner]): [string, Json] => [
    name,
    typeof inner === "string" && inner !== "" && isSecret(name) ? "[secret]" : withHidden(inner),
  ]);
  return Object.fromEntries(entries);
}
