import { type FormEvent, useState } from "react";
import type { JsonObject } from "../../../../src/schema/words/json.ts";
import { readMap } from "../../parts/read-yaml.ts";
import { readInputs, type Texts } from "./input-values.ts";
import type { InputField } from "./inputs.ts";
import { useFocusOnProblem } from "./use-focus-on-problem.ts";

/** What a form of inputs begins with. */
export interface InputTexts {
  /** Of each field, by its name. */
  texts: Texts;
  /** Inputs that no field is for, as YAML or JSON. */
  more: string;
}

/**
 * What is typed into a form of inputs, and what is wrong with it: by field, and under `""` with the inputs that no field is for. Sending the
 * form gives its values to `onValues`, unless an input is wrong, or `isBusy`. `begin` is asked again and again: the fields may change while
 * they are filled in, and what was typed stays, also for a field that goes and comes back.
 */
export function useInputs(
  fields: readonly InputField[],
  begin: () => InputTexts,
  { isBusy, onValues }: { isBusy: boolean; onValues(values: JsonObject): void },
) {
  const [typed, setTyped] = useState<Partial<InputTexts>>({});
  const [problems, setProblems] = useState<Readonly<Record<string, string>>>({});
  const form = useFocusOnProblem(problems);
  const first = begin();
  const texts = { ...first.texts, ...typed.texts };
  const more = typed.more ?? first.more;
  const submit = async () => {
    const { values, problems: found } = await readInputs(fields, texts);
    const others = await readMap(more).catch((error: Error) => error);
    const all = others instanceof Error ? { ...found, "": others.message } : found;
    setProblems(all);
    if (others instanceof Error || Object.keys(all).length > 0) return;
    onValues({ ...others, ...values });
  };
  return {
    ...{ form, texts, more, problems },
    /** How many inputs are wrong. */
    count: Object.keys(problems).length,
    /** Whether something was typed into a field. */
    isTyped: (name: string) => typed.texts !== undefined && Object.hasOwn(typed.texts, name),
    setText: (name: string, text: string) =>
      setTyped((before) => ({ ...before, texts: { ...before.texts, [name]: text } })),
    setMore: (text: string) => setTyped((before) => ({ ...before, more: text })),
    reset(to: InputTexts) {
      setTyped(to);
      setProblems({});
    },
    onSubmit(event: FormEvent) {
      event.preventDefault();
      if (!isBusy) void submit();
    },
  };
}
