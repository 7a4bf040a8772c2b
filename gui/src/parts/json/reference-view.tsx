import { useQuery } from "@tanstack/react-query";
import { type ReactNode, use, useState } from "react";
import { Problem, problemOf } from "../../api/problem.ts";
import { authorization, sessionToken } from "../../api/session.ts";
import { Ago } from "../now.tsx";
import { bytesText, loadPayload, payloadAddress, type Reference, SHOWN_BYTES_MAX } from "./reference.ts";
import { ShownValue } from "./shown-value.ts";

/** A value in a store: its size and its beginning; all of it on request. */
export function ReferenceView({ reference, label }: { reference: Reference; label: string }): ReactNode {
  const Shown = use(ShownValue);
  const [isRequested, setIsRequested] = useState(false);
  const { ref, field, meta, preview, extracted, store, expires_at: expiresAt } = reference;
  const bytes = meta?.bytes ?? preview?.bytes;
  const loaded = useQuery({
    queryKey: ["payload", ref],
    queryFn: ({ signal }) => loadPayload(ref, signal),
    enabled: isRequested,
    // The target of a reference never changes. It is dropped from the cache soon after it is closed: it may be large.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 10_000,
  });
  if (loaded.data !== undefined) return <Shown value={fieldOf(loaded.data, field)} label={label} />;
  const isTooLarge = bytes !== undefined && bytes > SHOWN_BYTES_MAX;
  const sample = preview?.sample;
  return (
    <section className="json reference" aria-label={label}>
      <div className="row spread">
        <h3>{label}</h3>
        <div className="row">
          {!isTooLarge && (
            <button
              type="button"
              disabled={loaded.isFetching}
              onClick={() => (isRequested ? void loaded.refetch() : setIsRequested(true))}
            >
              {loaded.isFetching ? "Loading …" : `Load${bytes === undefined ? "" : ` ${bytesText(bytes)}`}`}
            </button>
          )}
          <Download address={payloadAddress(ref)} />
        </div>
      </div>
      {loaded.isError && <PayloadProblem error={loaded.error} expiresAt={expiresAt} />}
      <p className="quiet">
        {field !== undefined && "part of "}
        {bytes !== undefined && `${bytesText(bytes)} `}kept in the store{store !== undefined && ` ${store}`}
        {expiresAt !== undefined && (
          <>
            {", until "}
            <Ago at={expiresAt} />
          </>
        )}
        {isTooLarge && ". It is too large to be shown here: download it."}
      </p>
      {extracted !== undefined && Object.keys(extracted).length > 0 && (
        <Shown label="Selected fields" value={extracted} />
      )}
      {sample !== undefined && (
        <>
          <p className="quiet">It begins with</p>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys */}
          <section className="sample" tabIndex={0} aria-label={`How ${label} begins`}>
            <pre>{typeof sample === "string" ? sample : JSON.stringify(sample, null, 2)}</pre>
          </section>
        </>
      )}
    </section>
  );
}

/** What is meant of a payload: one of its fields, or all of it. */
function fieldOf(payload: unknown, field: string | undefined): unknown {
  if (field === undefined || typeof payload !== "object" || payload === null) return payload;
  return Object.hasOwn(payload, field) ? (payload as Record<string, unknown>)[field] : null;
}

function PayloadProblem({ error, expiresAt }: { error: unknown; expiresAt: string | undefined }): ReactNode {
  const status = error instanceof Problem ? error.status : undefined;
  const isPast = expiresAt !== undefined && Date.parse(expiresAt) < Date.now();
  return (
    <div role="alert" className="tone-bad problem">
      <p className="wrap">{error instanceof Error ? error.message : String(error)}</p>
      {status === 404 && (
        <p>
          {isPast ? "Its time is over, and the store has removed it. " : ""}The log keeps how it began; to have all of
          it again, run the playbook again.
        </p>
      )}
      {status === 403 && <p>Ask for a role that may view this playbook.</p>}
    </div>
  );
}

/** A payload as a file. Where a token is needed, a plain link would not send it. */
export function Download({ address, name }: { address: string; name?: string }): ReactNode {
  const [problem, setProblem] = useState("");
  if (sessionToken() === undefined) {
    return (
      <a className="button" href={address} download={name ?? true}>
        Download
      </a>
    );
  }
  const save = async () => {
    try {
      const response = await fetch(address, { headers: authorization() });
      if (!response.ok) throw await problemOf(response);
      const link = document.createElement("a");
      link.href = URL.createObjectURL(await response.blob());
      link.download =
        name ?? /filename="([\w.-]+)"/.exec(response.headers.get("content-disposition") ?? "")?.[1] ?? "result.json";
      link.click();
      URL.revokeObjectURL(link.href);
      setProblem("");
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <>
      <button type="button" onClick={() => void save()}>
        Download
      </button>
      {problem !== "" && <span role="alert">{problem}</span>}
    </>
  );
}
