import { type ReactNode, useMemo } from "react";
import { isJsonObject, type Json, type JsonObject, own, setOwn } from "../../../../src/schema/words/json.ts";
import { Problem } from "../../api/problem.ts";
import type { Allowed } from "../../parts/allowed.ts";
import { AllowedButton } from "../../parts/allowed-button.tsx";
import { Field } from "./field.tsx";
import { type Texts, textOf } from "./input-values.ts";
import { fieldsOf, type InputField, inTextOrder, type RunSubject } from "./inputs.ts";
import { PreviewCard } from "./preview.tsx";
import { SystemCalls } from "./system-calls.tsx";
import { useInputs } from "./use-inputs.ts";
import { type PreviewOf, useStartPreview } from "./use-start-preview.ts";

/** What starts it. */
export interface InputRun {
  mutate(started: { workload: JsonObject; fields: readonly InputField[] }): void;
  isPending: boolean;
  error: Error | null;
}

/** What the server shows instead of a secret. */
const MASKED = "[secret]";

/** The form of a playbook's inputs. It starts nothing while an input is wrong. */
export function InputForm({
  subject,
  filled,
  may,
  run,
  label,
  of,
  children,
}: {
  subject: RunSubject;
  /** What its fields begin with, instead of the defaults. */
  filled: JsonObject;
  may: Allowed;
  run: InputRun;
  /** Of the button. */
  label: string;
  /** What it would start, for the preview beside it; undefined while that is not known. */
  of: PreviewOf | undefined;
  /** Before the fields. */
  children?: ReactNode;
}): ReactNode {
  const fields = useMemo(() => inTextOrder(fieldsOf(subject.payload), subject.content), [subject]);
  // A playbook that declares its inputs has no others.
  const isClosed = isJsonObject(subject.payload["inputs"]);
  const refused = refusedInputs(run.error);
  const inputs = useInputs(
    fields,
    () => ({ texts: startTexts(fields, filled), more: isClosed ? "" : moreText(fields, filled) }),
    { isBusy: run.isPending, onValues: (workload) => run.mutate({ workload, fields }) },
  );
  const { problems } = inputs;
  const preview = useStartPreview(of, fields, inputs);
  const liveProblem = (name: string) => (inputs.isTyped(name) ? own(preview.problems, name) : undefined);
  return (
    <div className="with-preview">
      <form ref={inputs.form} className="stack" onSubmit={inputs.onSubmit} noValidate>
        {children}
        {fields.length === 0 && <p className="quiet">It names no inputs.</p>}
        {fields.map((field) => (
          <Field
            key={field.name}
            field={field}
            problem={
              (own(problems, field.name) ?? own(refused, field.name) ?? liveProblem(field.name)) as string | undefined
            }
            text={inputs.texts[field.name] ?? ""}
            onText={(text) => inputs.setText(field.name, text)}
          />
        ))}
        {!isClosed && <MoreInputs text={inputs.more} onText={inputs.setMore} problem={problems[""]} />}
        <SystemCalls subject={subject} />
        {!may.allowed && <p className="quiet wrap">{may.why}</p>}
        <Refusal count={inputs.count} error={run.error} />
        <div className="row">
          <AllowedButton may={may} type="submit" className="main" disabled={run.isPending}>
            {run.isPending ? "Starting …" : label}
          </AllowedButton>
          <button type="button" onClick={() => inputs.reset({ texts: startTexts(fields, {}), more: "" })}>
            Defaults
          </button>
        </div>
      </form>
      <PreviewCard preview={preview} />
    </div>
  );
}

/** Why nothing was started. */
function Refusal({ count, error }: { count: number; error: Error | null }): ReactNode {
  if (count === 0 && error === null) return null;
  return (
    <p role="alert" className="problem wrap">
      {count > 0 ? `Not started: ${count === 1 ? "one input is" : `${count} inputs are`} wrong.` : error?.message}
    </p>
  );
}

function MoreInputs({
  text,
  onText,
  problem,
}: {
  text: string;
  onText(text: string): void;
  problem: string | undefined;
}): ReactNode {
  return (
    <details open={text !== "" || problem !== undefined}>
      <summary className="quiet">Other inputs</summary>
      <div className="field">
        <label htmlFor="more-inputs">Inputs that the document has no default for, as YAML or JSON</label>
        <textarea
          id="more-inputs"
          className="mono"
          rows={Math.max(3, Math.min(14, text.split("\n").length + 1))}
          spellCheck={false}
          placeholder="name: value"
          value={text}
          aria-invalid={problem !== undefined}
          onChange={(event) => onText(event.target.value)}
        />
        {problem !== undefined && <p className="problem wrap">It {problem}</p>}
      </div>
    </details>
  );
}

/** What the server found wrong with the inputs, by their names. */
function refusedInputs(error: unknown): Readonly<Record<string, string>> {
  const errors = error instanceof Problem && isJsonObject(error.detail) ? own(error.detail, "errors") : undefined;
  const found: Record<string, string> = {};
  for (const one of Array.isArray(errors) ? errors : []) {
    const { path, message } = isJsonObject(one) ? one : {};
    if (typeof path !== "string" || typeof message !== "string") continue;
    const [name = "", ...below] = path.split(".");
    setOwn(found, name, below.length === 0 ? message : `${below.join(".")} ${message}`);
  }
  return found;
}

function startTexts(fields: readonly InputField[], filled: JsonObject): Texts {
  return Object.fromEntries(
    fields.map((field) => {
      const given = Object.hasOwn(filled, field.name) ? filled[field.name] : undefined;
      return [field.name, textOf(field, given === undefined || hasSecret(given) ? field.initial : given)];
    }),
  );
}

/** Inputs that no field is for. */
function moreText(fields: readonly InputField[], filled: JsonObject): string {
  const known = new Set(fields.map(({ name }) => name));
  const others = Object.entries(filled).filter(([name, value]) => !known.has(name) && !hasSecret(value));
  return others.length === 0 ? "" : JSON.stringify(Object.fromEntries(others), null, 2);
}

function hasSecret(value: Json): boolean {
  if (typeof value === "string") return value.includes(MASKED);
  if (Array.isArray(value)) return value.some(hasSecret);
  return isJsonObject(value) && Object.values(value).some(hasSecret);
}
