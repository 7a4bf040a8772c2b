import { type ReactNode, useMemo } from "react";
import { callRefusal } from "../../../../src/schema/rules/access-rules.ts";
import type { Json } from "../../../../src/schema/words/json.ts";
import type { RunSubject } from "./inputs.ts";
import { systemPaths } from "./system-paths.ts";

/** Says before a run which system playbooks it calls: they act with the rights of the service. */
export function SystemCalls({ subject }: { subject: RunSubject }): ReactNode {
  const called = useMemo(() => [...new Set(systemPaths(subject.payload as Json))], [subject]);
  const [first] = called;
  if (first === undefined) return null;
  const list = called.join(", ");
  if (callRefusal(subject.path, first) === undefined)
    return <p className="quiet wrap">Calls system playbooks: {list}.</p>;
  return (
    <p className="problem wrap">Calls system playbooks: {list}. Only system playbooks may; these calls will fail.</p>
  );
}
