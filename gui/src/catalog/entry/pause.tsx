import type { ReactNode } from "react";
import { api } from "../../api/client.ts";
import { queries } from "../../api/queries.ts";
import type { Resource } from "../../api/types.ts";
import { useAllowed } from "../../parts/allowed.ts";
import { PausedPanel } from "../../parts/paused-panel.tsx";
import { ReasonButton } from "../../parts/reason-button.tsx";

const renew = () => void queries.invalidateQueries({ queryKey: ["catalog"] });

/** The button that pauses a path. */
export function PauseEntry({ path }: { path: string }): ReactNode {
  const may = useAllowed("modify", { path, to: "pause" });
  return (
    <ReasonButton
      may={may}
      button="Pause …"
      title="Pause this playbook?"
      explanation="Every start, of any version, is refused until it is resumed. Running executions continue."
      label="Why"
      placeholder="Shown to everyone whose start is refused"
      submit="Pause it"
      submitting="Pausing …"
      act={(reason) =>
        api("POST /api/catalog/pause/:path{.+}", { params: { path }, body: reason === "" ? {} : { reason } })
      }
      onDone={renew}
    />
  );
}

/** That a path is paused. */
export function EntryPaused({ entry: { path, paused } }: { entry: Resource }): ReactNode {
  const may = useAllowed("modify", { path, to: "resume" });
  if (paused === undefined) return null;
  return (
    <PausedPanel
      title="Paused: nothing of it is started"
      pause={paused}
      may={may}
      resume={() => api("POST /api/catalog/resume/:path{.+}", { params: { path }, body: {} })}
      onDone={renew}
    />
  );
}
