import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

/** Labels of an execution, each a link to those that have it too; above `max` only how many more there are. */
export function Labels({
  labels = {},
  max = Number.POSITIVE_INFINITY,
}: {
  labels: Readonly<Record<string, string>> | undefined;
  max?: number;
}): ReactNode {
  const all = Object.entries(labels);
  const rest = all.slice(max);
  return (
    <>
      {all.slice(0, max).map(([name, value]) => (
        <Link
          key={name}
          to="/executions"
          search={{ q: `label.${name}:${/^[^\s"]+$/.test(value) ? value : JSON.stringify(value)}` }}
          className="label"
          title={`Executions with ${name}=${value}`}
        >
          {name}={value}
        </Link>
      ))}
      {rest.length > 0 && (
        <span className="quiet" title={rest.map(([name, value]) => `${name}=${value}`).join("\n")}>
          +{rest.length}
        </span>
      )}
    </>
  );
}

/** A version as it stands behind a path. An execution of version 0 runs a text that was never registered. */
export function versionText(version: number): string {
  return version === 0 ? "draft" : `v${version}`;
}
