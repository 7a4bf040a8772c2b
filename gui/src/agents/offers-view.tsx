import type { ReactNode } from "react";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import { withoutSecrets } from "../catalog/run/last-inputs.ts";
import type { Allowed } from "../parts/allowed.ts";
import { JsonView } from "../parts/json/view.tsx";
import type { McpTool } from "./mcp-tools.ts";
import { OFFERS, type OfferKind, requestFor } from "./offers.ts";
import { ToolForm } from "./tool-form.tsx";

/** What a server offers of one kind: a list to choose from, and of the chosen one a form, and its description as the server gives it. */
export function Offers({
  kind,
  offers,
  chosen,
  again,
  may,
  isBusy,
  onChoose,
  onCall,
}: {
  kind: OfferKind;
  /** Undefined until the server was asked. */
  offers: readonly McpTool[] | undefined;
  chosen: string | undefined;
  /** An earlier call of one of them. */
  again: { name: string; values: JsonObject } | undefined;
  may: Allowed;
  isBusy: boolean;
  onChoose(name: string): void;
  /** `shown`: the same without secrets. */
  onCall(what: string, workload: JsonObject, shown: JsonObject): void;
}): ReactNode {
  const { one, verb } = OFFERS[kind];
  const known = offers?.find(({ name }) => name === chosen);
  // Of an earlier call's the schema may not have been asked for.
  const offer = known ?? (again !== undefined && again.name === chosen ? bare(again.name) : undefined);
  if (offers?.length === 0) return <p>The server offers no {one}.</p>;
  return (
    <div className="offers" data-listed={offers !== undefined}>
      {offers !== undefined && (
        <ul className="plain-list offer-list" aria-label={OFFERS[kind].title}>
          {offers.map(({ name, title, description }) => (
            <li key={name}>
              <button type="button" aria-pressed={name === chosen} onClick={() => onChoose(name)}>
                <span className="wrap name">{name}</span>
                {(title || description) !== "" && <span className="quiet wrap">{title || description}</span>}
              </button>
            </li>
          ))}
        </ul>
      )}
      {offer !== undefined && (
        <div className="stack">
          <ToolForm
            key={offer === known ? `${offer.name} known` : offer.name}
            tool={offer}
            filled={again?.name === offer.name ? again.values : undefined}
            verb={verb}
            may={may}
            isBusy={isBusy}
            onCall={(values, fields) =>
              onCall(
                offer.name,
                requestFor(kind, offer.name, values),
                requestFor(kind, offer.name, withoutSecrets(fields, values)),
              )
            }
          />
          {offer.raw !== undefined && (
            <details>
              <summary className="quiet">As the server describes it</summary>
              <JsonView label="Description" value={offer.raw} />
            </details>
          )}
        </div>
      )}
    </div>
  );
}

function bare(name: string): McpTool {
  return { name, title: "", description: "", inputSchema: {}, hints: [] };
}
