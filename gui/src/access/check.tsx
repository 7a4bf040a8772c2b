import { useMutation } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { api } from "../api/client.ts";

const ACTIONS = [
  ["view", "see"],
  ["execute", "run"],
  ["modify", "change"],
] as const;
type Action = (typeof ACTIONS)[number][0];

/** Shows whether a user may do something with a playbook, and by which rule. */
export function Check(): ReactNode {
  const [question, setQuestion] = useState<{ email: string; action: Action; path: string }>();
  const check = useMutation({
    mutationFn: ({ email, action, path }: { email: string; action: Action; path: string }) =>
      api("POST /api/auth/can", { body: { action, path, ...(email !== "" && { email }) } }),
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const value = (name: string) => String(form.get(name) ?? "").trim();
    const action = ACTIONS.find(([name]) => name === value("action"))?.[0] ?? "view";
    const question = { email: value("email"), action, path: value("path") };
    setQuestion(question);
    check.mutate(question);
  };
  return (
    <div className="stack">
      <form className="row" onSubmit={submit}>
        <label>
          May
          <input data-filter name="email" type="email" placeholder="you" maxLength={320} aria-label="User" />
        </label>
        <label>
          <span className="unseen">Do what</span>
          <select name="action">
            {ACTIONS.map(([name, word]) => (
              <option key={name} value={name}>
                {word}
              </option>
            ))}
          </select>
        </label>
        <label>
          <span className="unseen">Path</span>
          <input name="path" required maxLength={512} placeholder="etl/load" className="mono" />
        </label>
        <span aria-hidden="true">?</span>
        <button type="submit" className="main" disabled={check.isPending}>
          Ask
        </button>
      </form>
      <p className="quiet">The path need not be registered. Leave the address empty to ask about yourself.</p>
      <div role="status">
        {check.isSuccess && (
          <section className={`panel tone-${check.data.allowed ? "good" : "bad"}`}>
            <h2>
              {check.data.allowed ? "✓ Yes" : "✕ No"}: {check.data.email ?? "the holder of the operator's token"}{" "}
              {check.data.allowed ? "may" : "may not"} {wordOf(check.data.action)} <code>{check.data.path}</code>
            </h2>
            <p className="wrap">By {check.data.rule}.</p>
          </section>
        )}
        {check.isError && (
          <section className="panel tone-bad">
            <h2>No answer for {question?.email === "" ? "you" : question?.email}</h2>
            <p className="wrap">{check.error.message}</p>
          </section>
        )}
      </div>
    </div>
  );
}

function wordOf(action: string): string {
  return ACTIONS.find(([name]) => name === action)?.[1] ?? action;
}
