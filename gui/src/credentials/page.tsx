import { getRouteApi } from "@tanstack/react-router";
import type { ReactNode } from "react";
import "../styles/catalog.css";
import { CredentialDetail } from "./detail.tsx";
import { CredentialForm } from "./form.tsx";
import { CredentialList } from "./list.tsx";

const route = getRouteApi("/credentials");

/** Which credentials there are, what one is for, and the way to make one. What they hold is never sent to a browser. */
export function CredentialsPage(): ReactNode {
  const { name, form } = route.useSearch();
  if (form === "new") return <CredentialForm key="new" />;
  if (name === undefined) return <CredentialList />;
  return <CredentialDetail key={name} name={name} isReplaced={form === "replace"} />;
}
