import { type FormEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { queries } from "../api/queries.ts";
import { keepToken } from "../api/session.ts";

/** Asks for the token of a server that has one. It stays in this tab and goes with it. */
export function TokenDialog({ onDone }: { onDone(): void }): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const [token, setToken] = useState("");
  useEffect(() => {
    if (dialog.current?.open === false) dialog.current.showModal();
  }, []);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    keepToken(token.trim());
    onDone();
    void queries.invalidateQueries();
  };
  return (
    <dialog ref={dialog} aria-labelledby="token-title" onClose={onDone}>
      <form className="stack" onSubmit={submit}>
        <h1 id="token-title">This server asks for a token</h1>
        <p>
          It is what <code>FLOW_SERVER_TOKEN</code> is set to. It is kept in this tab until you close it.
        </p>
        <label>
          Token
          <input
            type="password"
            autoComplete="off"
            required
            value={token}
            onChange={(event) => setToken(event.target.value)}
          />
        </label>
        <div className="row">
          <button type="submit" className="main">
            Use it
          </button>
          <button type="button" onClick={() => dialog.current?.close()}>
            Not now
          </button>
        </div>
      </form>
    </dialog>
  );
}
