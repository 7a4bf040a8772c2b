import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { isJsonObject, type Json, type JsonObject, setOwn } from "../../../../src/schema/words/json.ts";
import { api } from "../../api/client.ts";
import { readMap } from "../../parts/read-yaml.ts";
import { readInputs } from "./input-values.ts";
import type { InputField } from "./inputs.ts";
import type { InputTexts } from "./use-inputs.ts";

/** What would be started: a version of a path, or a text. */
export type PreviewOf = { path: string; version: number } | { content: string };

/** What a start with a form's inputs would begin with. */
export interface StartPreview {
  /** Undefined until the server has answered. Secrets are hidden. */
  workload: JsonObject | undefined;
  /** What is wrong with which input, by its name. */
  problems: Readonly<Record<string, string>>;
  warnings: readonly string[];
  /** Why if the start would be refused. */
  error: Error | null;
  /** Something was typed that is not in it yet. */
  isOld: boolean;
}

/** The server is asked when nothing was typed for so long. */
const TYPED_MS = 300;

/** Follows what is typed. `of` undefined: there is nothing that could start, and what was shown last stays. */
export function useStartPreview(
  of: PreviewOf | undefined,
  fields: readonly InputField[],
  { texts, more }: InputTexts,
): StartPreview {
  const typed = JSON.stringify([texts, more]);
  const [read, setRead] = useState<{ typed: string; values: JsonObject; problems: StartPreview["problems"] }>();
  useEffect(() => {
    let isStale = false;
    const [fieldTexts, moreText] = JSON.parse(typed) as [InputTexts["texts"], string];
    const timer = setTimeout(async () => {
      const { values, problems } = await readInputs(fields, fieldTexts);
      // What cannot be read yet is left out.
      const others = await readMap(moreText).catch(() => ({}));
      if (!isStale) setRead({ typed, values: { ...others, ...values }, problems });
    }, TYPED_MS);
    return () => {
      isStale = true;
      clearTimeout(timer);
    };
  }, [fields, typed]);
  const { data, error, isFetching } = useQuery({
    queryKey: ["start-preview", of, read?.values],
    enabled: of !== undefined && read !== undefined,
    placeholderData: keepPreviousData,
    // What was typed may be a secret.
    gcTime: 0,
    retry: false,
    queryFn: ({ signal }) =>
      api("POST /api/execute/preview", { body: { ...of, workload: (read?.values ?? {}) as never }, signal }),
  });
  const workload = data?.workload as JsonObject | undefined;
  return {
    workload: workload && withoutTyped(workload, fields, texts),
    problems: { ...byName(data?.problems ?? []), ...read?.problems },
    warnings: data?.warnings ?? [],
    error,
    isOld: isFetching || read?.typed !== typed || of === undefined,
  };
}

function byName(problems: readonly { path: string; message: string }[]): Record<string, string> {
  const found: Record<string, string> = {};
  for (const { path, message } of problems) {
    const [name = "", ...below] = path.split(".");
    setOwn(found, name, below.length === 0 ? message : `${below.join(".")} ${message}`);
  }
  return found;
}

/** As the server shows a secret. */
const MASKED = "[secret]";
/** A shorter text would be found in others by chance. */
const FOUND_MIN = 4;

/** Without what stands in fields that are shown as dots, wherever it went: the server knows only of declared secrets. */
function withoutTyped(workload: JsonObject, fields: readonly InputField[], texts: InputTexts["texts"]): JsonObject {
  const secrets = fields.flatMap(({ secret, name }) => (secret && texts[name] ? [{ name, text: texts[name] }] : []));
  if (secrets.length === 0) return workload;
  const hide = (value: Json): Json => {
    if (typeof value === "string") {
      return secrets.reduce((all, { text }) => (text.length < FOUND_MIN ? all : all.replaceAll(text, MASKED)), value);
    }
    if (Array.isArray(value)) return value.map(hide);
    if (!isJsonObject(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, hide(inner)]));
  };
  const hidden = hide(workload) as JsonObject;
  for (const { name } of secrets) if (Object.hasOwn(hidden, name)) setOwn(hidden, name, MASKED);
  return hidden;
}
