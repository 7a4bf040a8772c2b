import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { Allowed } from "./allowed.ts";
import { AllowedButton } from "./allowed-button.tsx";
import { Ago } from "./now.tsx";

/** Since when something is paused, by whom and why, with the button that ends it. */
export function PausedPanel(props: {
  title: string;
  pause: { since: string; by: string | null; reason: string | null };
  may: Allowed;
  resume(): Promise<unknown>;
  onDone(): void;
}): ReactNode {
  const { title, pause, may } = props;
  const resume = useMutation({ mutationFn: () => props.resume(), onSuccess: () => props.onDone() });
  return (
    <section className="panel tone-warn" data-part="paused">
      <h2>{title}</h2>
      <p className="big wrap">{pause.reason ?? "No reason given"}</p>
      <p className="quiet">
        {pause.by !== null && `by ${pause.by}, `}
        <Ago at={pause.since} />
      </p>
      <div className="row">
        <AllowedButton may={may} disabled={resume.isPending} onClick={() => resume.mutate()}>
          {resume.isPending ? "Resuming …" : "Resume"}
        </AllowedButton>
        {resume.isError && (
          <span role="alert" className="tone-bad wrap">
            {resume.error.message}
          </span>
        )}
      </div>
    </section>
  );
}
