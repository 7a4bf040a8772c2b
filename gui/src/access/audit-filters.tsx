import { getRouteApi, Link } from "@tanstack/react-router";
import type { FormEvent, ReactNode } from "react";

const route = getRouteApi("/access");
const RESULTS = [
  ["allow", "allowed"],
  ["deny", "refused"],
  ["error", "failed"],
] as const;
/** What people look for most; any other can be typed. */
const ACTIONS = [
  "session.open",
  "session.revoke",
  "user.create",
  "user.update",
  "user.delete",
  "user.grant",
  "user.revoke",
  "role.create",
  "role.update",
  "role.delete",
  "role.allow",
  "role.disallow",
  "playbook.execute",
  "playbook.view",
  "playbook.modify",
  "credential.read",
  "credential.write",
  "credential.delete",
  "keychain.read",
  "keychain.write",
  "sealing.key",
];

/** What the audit log is narrowed to; it stands in the address. */
export function AuditFilterForm(): ReactNode {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const value = (name: string) => String(form.get(name) ?? "").trim() || undefined;
    void navigate({
      search: {
        tab: "audit",
        actor: value("actor"),
        action: value("action"),
        resource: value("resource"),
        result: RESULTS.find(([name]) => name === value("result"))?.[0],
        since: timeOf(value("since")),
        until: timeOf(value("until")),
      },
    });
  };
  const key = JSON.stringify(search);
  return (
    <form key={key} className="row filters" onSubmit={submit}>
      <label>
        Who
        <input data-filter name="actor" defaultValue={search.actor} placeholder="name@example.com" maxLength={320} />
      </label>
      <ActionField action={search.action} />
      <label>
        On what
        <input name="resource" defaultValue={search.resource} placeholder="playbook/team/report" maxLength={600} />
      </label>
      <label>
        Result
        <select name="result" defaultValue={search.result ?? ""}>
          <option value="">any</option>
          {RESULTS.map(([name, word]) => (
            <option key={name} value={name}>
              {word}
            </option>
          ))}
        </select>
      </label>
      <label>
        From
        <input name="since" type="datetime-local" defaultValue={localOf(search.since)} />
      </label>
      <label>
        To
        <input name="until" type="datetime-local" defaultValue={localOf(search.until)} />
      </label>
      <button type="submit" className="main">
        Show
      </button>
      <Link to="/access" search={{ tab: "audit" }} className="button">
        All
      </Link>
    </form>
  );
}

function ActionField({ action }: { action: string | undefined }): ReactNode {
  return (
    <>
      <label>
        Did
        <input name="action" list="audit-actions" defaultValue={action} placeholder="user.grant" maxLength={100} />
      </label>
      <datalist id="audit-actions">
        {ACTIONS.map((known) => (
          <option key={known} value={known} />
        ))}
      </datalist>
    </>
  );
}

/** A moment of the reader's own zone, as the server takes it. */
function timeOf(local: string | undefined): string | undefined {
  const at = Date.parse(local ?? "");
  return Number.isNaN(at) ? undefined : new Date(at).toISOString();
}

/** The same the other way, to the minute, as the field takes it. */
function localOf(time: string | undefined): string | undefined {
  const at = new Date(time ?? "");
  if (Number.isNaN(at.getTime())) return undefined;
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
