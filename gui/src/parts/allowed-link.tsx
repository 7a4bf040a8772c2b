import type { ReactNode } from "react";
import type { Allowed } from "./allowed.ts";
import { AllowedButton } from "./allowed-button.tsx";

/** A link to where something is done; where that is not allowed, a button that says why in its place. */
export function AllowedLink({ may, label, children }: { may: Allowed; label: string; children: ReactNode }): ReactNode {
  return may.allowed ? children : <AllowedButton may={may}>{label}</AllowedButton>;
}
