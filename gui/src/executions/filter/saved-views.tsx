import { getRouteApi } from "@tanstack/react-router";
import { Star, X } from "lucide-react";
import { type ReactNode, useState, useSyncExternalStore } from "react";

const route = getRouteApi("/executions");
type Search = ReturnType<typeof route.useSearch>;

/** A list that was kept under a name, on this browser. */
interface SavedView {
  name: string;
  search: Search;
}

const KEY = "flow.views";
/** Views that are kept. */
const VIEWS_MAX = 20;
const changes = new EventTarget();

function follow(listener: () => void): () => void {
  changes.addEventListener("change", listener);
  window.addEventListener("storage", listener);
  return () => {
    changes.removeEventListener("change", listener);
    window.removeEventListener("storage", listener);
  };
}

function useViews(): readonly SavedView[] {
  return viewsIn(useSyncExternalStore(follow, () => localStorage.getItem(KEY) ?? "[]"));
}

function viewsIn(text: string): SavedView[] {
  try {
    const kept: unknown = JSON.parse(text);
    return Array.isArray(kept) ? (kept as SavedView[]) : [];
  } catch {
    return [];
  }
}

function keep(views: readonly SavedView[]): void {
  localStorage.setItem(KEY, JSON.stringify(views.slice(-VIEWS_MAX)));
  changes.dispatchEvent(new Event("change"));
}

/** Keeps the list as it is narrowed now under a name. Nothing to keep: no button. */
export function SaveView(): ReactNode {
  const search = route.useSearch();
  const views = useViews();
  const [isOpen, setOpen] = useState(false);
  const [name, setName] = useState("");
  const isNarrowed = Object.values(search).some((value) => value !== undefined);
  if (!isNarrowed || views.some((view) => isSame(view.search, search))) return null;
  const shown = (dialog: HTMLDialogElement | null) => {
    if (dialog?.open === false) dialog.showModal();
  };
  return (
    <>
      <button type="button" data-command="Save this view" onClick={() => setOpen(true)}>
        Save view
      </button>
      {isOpen && (
        <dialog ref={shown} aria-labelledby="save-view-title" onClose={() => setOpen(false)}>
          {/* Of its own: a form within that of the filters would be theirs. */}
          <div className="stack">
            <h1 id="save-view-title">Save this view</h1>
            <label className="field">
              Name
              <input
                value={name}
                maxLength={40}
                placeholder="Nightly"
                onChange={(event) => setName(event.target.value)}
              />
            </label>
            <p className="quiet">It is kept on this browser. To share a list, send its address.</p>
            <div className="row">
              <button
                type="button"
                className="main"
                disabled={name.trim() === ""}
                onClick={() => {
                  keep([...views.filter((view) => view.name !== name.trim()), { name: name.trim(), search }]);
                  setOpen(false);
                }}
              >
                Save
              </button>
              <button type="button" onClick={() => setOpen(false)}>
                Close
              </button>
            </div>
          </div>
        </dialog>
      )}
    </>
  );
}

/** The views that were kept, each with a button that forgets it. */
export function SavedViews(): ReactNode {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const views = useViews();
  return views.map((view) => {
    const isHere = isSame(view.search, search);
    return (
      <span key={view.name} className="saved-view">
        <button
          type="button"
          className="chip"
          aria-pressed={isHere}
          onClick={() => void navigate({ search: isHere ? {} : view.search })}
        >
          <Star className="icon" aria-hidden="true" />
          {view.name}
        </button>
        {isHere && (
          <button
            type="button"
            className="quiet forget"
            aria-label={`Forget the view ${view.name}`}
            title="Forget this view"
            onClick={() => keep(views.filter(({ name }) => name !== view.name))}
          >
            <X className="icon" aria-hidden="true" />
          </button>
        )}
      </span>
    );
  });
}

function isSame(one: Search, other: Search): boolean {
  const text = (search: Search) =>
    JSON.stringify(
      Object.entries(search)
        .filter(([, value]) => value !== undefined)
        .sort(([a], [b]) => (a < b ? -1 : 1)),
    );
  return text(one) === text(other);
}
