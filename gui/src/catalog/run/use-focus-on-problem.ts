import { type RefObject, useEffect, useRef } from "react";

/** Goes to the first field that is wrong when a form was found to have some. Gives the form's reference. */
export function useFocusOnProblem(problems: Readonly<Record<string, string>>): RefObject<HTMLFormElement | null> {
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (Object.keys(problems).length > 0) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [problems]);
  return form;
}
