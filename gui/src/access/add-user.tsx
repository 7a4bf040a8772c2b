import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, type ReactNode, useRef } from "react";
import { api } from "../api/client.ts";
import { useAllowed } from "../parts/allowed.ts";
import { AllowedButton } from "../parts/allowed-button.tsx";
import { DialogEnd } from "../parts/dialog-end.tsx";
import { accessChanged } from "./queries.ts";

/** Adds a user before their first login, so that they find their roles then. */
export function AddUser(): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const navigate = useNavigate();
  const may = useAllowed("manage_users");
  const add = useMutation({
    mutationFn: (body: { email: string; display_name?: string; issuer?: string }) =>
      api("POST /api/auth/users", { body }),
    onSuccess: async ({ user_id }) => {
      dialog.current?.close();
      await accessChanged();
      await navigate({ to: "/access", search: { tab: "users", user: String(user_id) } });
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const given = (name: string) => String(form.get(name) ?? "").trim();
    const [name, issuer] = [given("name"), given("issuer")];
    add.mutate({
      email: given("email"),
      ...(name !== "" && { display_name: name }),
      ...(issuer !== "" && { issuer }),
    });
  };
  return (
    <>
      <AllowedButton may={may} onClick={() => dialog.current?.showModal()}>
        Add a user …
      </AllowedButton>
      <dialog ref={dialog} aria-labelledby="add-user" onClose={() => add.reset()}>
        <form className="stack" onSubmit={submit}>
          <h1 id="add-user">Add a user</h1>
          <p>Their first login finds them by this address. Give them roles on their page.</p>
          <label className="field">
            Address
            <input name="email" type="email" required maxLength={320} autoComplete="off" />
          </label>
          <label className="field">
            Name (optional)
            <input name="name" maxLength={200} autoComplete="off" />
          </label>
          <label className="field">
            Identity provider, where the service has several
            <input
              name="issuer"
              type="url"
              maxLength={500}
              autoComplete="off"
              placeholder="https://login.example.com/"
            />
          </label>
          <DialogEnd action={add} submit="Add" onClose={() => dialog.current?.close()} />
        </form>
      </dialog>
    </>
  );
}
