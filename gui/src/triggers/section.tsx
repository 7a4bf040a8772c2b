import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { isJsonObject, type Json, type JsonObject } from "../../../src/schema/words/json.ts";
import { PUBLIC_PATH } from "../api/session.ts";
import type { Trigger } from "../api/triggers.ts";
import { CopyButton } from "../parts/copy.tsx";
import { JsonView } from "../parts/json/view.tsx";
import { durationText } from "../parts/time.ts";
import { cronText } from "./cron-text.ts";

/** What a trigger fires for, and with which input it starts its playbook. */
export function FiresFor({ trigger }: { trigger: Trigger }): ReactNode {
  const { kind, overlap, catchup, input } = trigger;
  const section = trigger.section as JsonObject;
  return (
    <section className="card">
      <header>
        <h2>When it fires</h2>
      </header>
      <div className="pad stack">
        {kind === "webhook" && <Address path={String(section["path"])} />}
        <dl className="facts">
          {kind === "schedule" && <Schedule section={section} catchup={catchup} />}
          {kind === "webhook" && <Webhook section={section} />}
          {kind === "execution" && (
            <Fact name="When">
              an execution of <code>{String(section["path"])}</code> ends as{" "}
              {textsOf(section["status"]).join(", ").toLowerCase()}
            </Fact>
          )}
          {kind === "signal" && (
            <Fact name="When">
              the signal <code>{String(section["name"])}</code> is sent to everyone
            </Fact>
          )}
          {kind === "nats" && <Nats section={section} />}
          <Fact name="While one runs">{OVERLAPS[overlap]}</Fact>
        </dl>
        {Object.keys(input).length > 0 && <JsonView label="Input" value={input} />}
      </div>
    </section>
  );
}

const OVERLAPS: Readonly<Record<Trigger["overlap"], string>> = {
  allow: "another one is started beside it",
  skip: "nothing is started",
  queue: "it waits until that one has ended",
  cancel_running: "that one is cancelled first",
};

function Fact({ name, children }: { name: string; children: ReactNode }): ReactNode {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

function Schedule({ section, catchup }: { section: JsonObject; catchup: Trigger["catchup"] }): ReactNode {
  const { every_ms: every, jitter_ms: jitter, timezone } = section;
  return (
    <>
      {typeof every === "number" ? (
        <Fact name="Every">{wholeText(every)}</Fact>
      ) : (
        <Fact name="At">
          {textsOf(section["cron"]).map((cron) => (
            <div key={cron}>
              <code>{cron}</code> <span className="quiet">{cronText(cron)}</span>
            </div>
          ))}
        </Fact>
      )}
      {typeof timezone === "string" && <Fact name="Time zone">{timezone}</Fact>}
      {typeof jitter === "number" && jitter > 0 && <Fact name="Put off by">at most {wholeText(jitter)}</Fact>}
      <Fact name="Missed times">
        {catchup.mode === "none" && "are not made up for"}
        {catchup.mode === "last" && "the last one is made up for"}
        {catchup.mode === "all" && "are made up for, oldest first"}
        {catchup.window_ms !== undefined && `, within ${wholeText(catchup.window_ms)}`}
      </Fact>
    </>
  );
}

/** Where deliveries are sent to. */
function Address({ path }: { path: string }): ReactNode {
  const address = `${location.origin}${PUBLIC_PATH}/hooks/${path}`;
  return (
    <div className="address">
      <code className="wrap">{address}</code>
      <CopyButton label="Copy" text={address} />
    </div>
  );
}

function Webhook({ section }: { section: JsonObject }): ReactNode {
  const verify = isJsonObject(section["verify"]) ? section["verify"] : {};
  const { deduplicate, when, keyHeader, respondMs } = section;
  return (
    <>
      <Fact name="Verified as">
        {verify["preset"] === "none"
          ? "not at all: anyone who knows the address can call it"
          : String(verify["preset"])}
      </Fact>
      {textsOf(verify["secrets"]).length > 0 && (
        <Fact name="Secrets">
          {textsOf(verify["secrets"]).map((name) => (
            <div key={name}>
              <Link to="/credentials" search={{ name }}>
                {name}
              </Link>
            </div>
          ))}
        </Fact>
      )}
      {typeof keyHeader === "string" && (
        <Fact name="Once for each">
          header <code>{keyHeader}</code>
        </Fact>
      )}
      {typeof deduplicate === "string" && (
        <Fact name="Once for each">
          <code className="wrap">{deduplicate}</code>
        </Fact>
      )}
      <Condition when={when} />
      {typeof respondMs === "number" && (
        <Fact name="Answers with">the result, for which it waits at most {wholeText(respondMs)}</Fact>
      )}
    </>
  );
}

function Nats({ section }: { section: JsonObject }): ReactNode {
  const { credential, stream, subject, when } = section;
  return (
    <>
      <Fact name="For messages of">
        stream <code>{String(stream)}</code>
        {typeof subject === "string" && (
          <>
            , subject <code>{subject}</code>
          </>
        )}
      </Fact>
      <Fact name="Credential">
        <Link to="/credentials" search={{ name: String(credential) }}>
          {String(credential)}
        </Link>
      </Fact>
      <Condition when={when} />
    </>
  );
}

function Condition({ when }: { when: Json | undefined }): ReactNode {
  if (when === undefined) return null;
  return (
    <Fact name="Only when">
      <code className="wrap">{typeof when === "string" ? when : JSON.stringify(when)}</code>
    </Fact>
  );
}

function textsOf(value: Json | undefined): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

/** `1 min`, and not `1 min 00 s`: what people write are whole amounts. */
function wholeText(ms: number): string {
  return durationText(ms).replace(/ 0+ \w+$/, "");
}
