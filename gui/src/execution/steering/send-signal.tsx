import { useMutation } from "@tanstack/react-query";
import { Send } from "lucide-react";
import { type FormEvent, type ReactNode, useRef } from "react";
import { api } from "../../api/client.ts";
import { queries } from "../../api/queries.ts";
import type { Execution, WaitingFor } from "../../api/types.ts";
import { useAllowed } from "../../parts/allowed.ts";
import { AllowedButton } from "../../parts/allowed-button.tsx";
import { DialogEnd } from "../../parts/dialog-end.tsx";
import { readYaml } from "../../parts/read-yaml.ts";

/** Sends the signal that a step waits for. */
export function SendSignal({ execution, wait }: { execution: Execution; wait: WaitingFor }): ReactNode {
  const { execution_id: executionId, path } = execution;
  const { name = "", key, step } = wait;
  const dialog = useRef<HTMLDialogElement>(null);
  const may = useAllowed("execute", { path, to: "send signals to" });
  const send = useMutation({
    mutationFn: async (text: string) =>
      api("POST /api/executions/:execution_id/signals/:name", {
        params: { execution_id: executionId, name },
        body: {
          ...(text !== "" && { data: (await readYaml(text)) as never }),
          ...(key !== undefined && { key }),
        },
      }),
    onSuccess: () => {
      dialog.current?.close();
      void queries.invalidateQueries({ queryKey: ["execution", executionId] });
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    send.mutate(String(new FormData(event.currentTarget).get("data") ?? "").trim());
  };
  return (
    <>
      <AllowedButton may={may} className="main" onClick={() => dialog.current?.showModal()}>
        <Send className="icon" aria-hidden="true" /> Send the signal …
      </AllowedButton>
      <dialog ref={dialog} aria-label={`Send signal ${name}?`}>
        <form className="stack" onSubmit={submit}>
          <h1 className="wrap">Send signal {name}?</h1>
          <p>
            The step {step} goes on with its data{key !== undefined && <>, for the key {key}</>}.
          </p>
          <label className="field">
            Data, as YAML or JSON
            <textarea name="data" className="mono" rows={5} spellCheck={false} placeholder="paid: true" />
          </label>
          <DialogEnd action={send} submit="Send it" submitting="Sending …" onClose={() => dialog.current?.close()} />
        </form>
      </dialog>
    </>
  );
}
