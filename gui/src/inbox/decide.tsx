import { useMutation } from "@tanstack/react-query";
import { Check, X } from "lucide-react";
import { type FormEvent, type ReactNode, useMemo, useState } from "react";
import { APPROVAL_TEXTS_MAX } from "../../../src/schema/words/approval.ts";
import { isJsonObject, type Json } from "../../../src/schema/words/json.ts";
import type { Approval } from "../api/approvals.ts";
import { api } from "../api/client.ts";
import { Problem } from "../api/problem.ts";
import { queries } from "../api/queries.ts";
import { Field } from "../catalog/run/field.tsx";
import { readInputs, type Texts, textOf } from "../catalog/run/input-values.ts";
import { fieldsOfSchema } from "../catalog/run/inputs.ts";
import { useFocusOnProblem } from "../catalog/run/use-focus-on-problem.ts";
import { WholeField } from "../catalog/run/whole-field.tsx";
import { readYaml } from "../parts/read-yaml.ts";

/** The form of an approval, with a comment and the two buttons. A rejection leaves the form out. */
export function Decide({ form, decide }: { form: Approval["form"]; decide: ReturnType<typeof useDecide> }): ReactNode {
  const fields = useMemo(() => (form === undefined ? [] : fieldsOfSchema(form)), [form]);
  const [texts, setTexts] = useState<Texts>(() =>
    Object.fromEntries(fields.map((field) => [field.name, textOf(field, field.initial)])),
  );
  const [whole, setWhole] = useState("");
  const [comment, setComment] = useState("");
  const [wrong, setWrong] = useState<Readonly<Record<string, string>>>({});
  const problems = { ...problemsOf(decide.error), ...wrong };
  const element = useFocusOnProblem(problems);
  const isWhole = form !== undefined && fields.length === 0;
  const approve = async () => {
    const { values, problems: found } = isWhole ? await readWhole(whole) : await readInputs(fields, texts);
    setWrong(found);
    if (Object.keys(found).length > 0) return;
    decide.mutate({ decision: "approve", comment, ...(form !== undefined && { data: values }) });
  };
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    if (!decide.isPending) void approve();
  };
  return (
    <form ref={element} className="stack" onSubmit={onSubmit} noValidate>
      {fields.map((field) => (
        <Field
          key={field.name}
          field={field}
          problem={Object.hasOwn(problems, field.name) ? problems[field.name] : undefined}
          text={texts[field.name] ?? ""}
          onText={(text) => setTexts((before) => ({ ...before, [field.name]: text }))}
        />
      ))}
      {isWhole && (
        <WholeField id="whole-answer" label="Your answer" text={whole} problem={problems[""]} onText={setWhole} />
      )}
      <div className="field">
        <label htmlFor="comment">
          Comment <span className="quiet">shown to everyone who sees the approval</span>
        </label>
        <textarea
          id="comment"
          rows={2}
          maxLength={APPROVAL_TEXTS_MAX.comment}
          value={comment}
          onChange={(event) => setComment(event.target.value)}
        />
      </div>
      <div className="row">
        <button type="submit" className="main" disabled={decide.isPending} data-command="Approve">
          <Check className="icon" aria-hidden="true" />
          Approve
        </button>
        <button
          type="button"
          className="risky"
          disabled={decide.isPending}
          data-command="Reject"
          onClick={() => {
            setWrong({});
            decide.mutate({ decision: "reject", comment });
          }}
        >
          <X className="icon" aria-hidden="true" />
          Reject
        </button>
      </div>
    </form>
  );
}

async function readWhole(text: string): Promise<{ values: Json; problems: Record<string, string> }> {
  try {
    return { values: text.trim() === "" ? {} : await readYaml(text), problems: {} };
  } catch (error) {
    return { values: null, problems: { "": error instanceof Error ? error.message : String(error) } };
  }
}

interface Saying {
  decision: "approve" | "reject";
  comment: string;
  data?: Json;
}

/** Says what a person decides. */
export function useDecide({ approval_id: id, execution_id: executionId }: Approval) {
  return useMutation({
    mutationFn: ({ comment, ...body }: Saying) =>
      api("POST /api/approvals/:approval_id/decide", {
        params: { approval_id: id },
        body: { ...body, ...(comment.trim() !== "" && { comment: comment.trim() }) } as never,
      }),
    // Also after a refusal: another person may have decided meanwhile.
    onSettled: () => {
      void queries.invalidateQueries({ queryKey: ["approvals"] });
      void queries.invalidateQueries({ queryKey: ["execution", executionId] });
    },
  });
}

/** What the server says of single fields. */
function problemsOf(error: Error | null): Record<string, string> {
  const detail = error instanceof Problem && isJsonObject(error.detail) ? error.detail["errors"] : undefined;
  const errors = Array.isArray(detail) ? detail.filter(isJsonObject) : [];
  return Object.fromEntries(errors.map(({ path, message }) => [String(path ?? ""), String(message ?? "is wrong")]));
}
