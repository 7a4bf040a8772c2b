import { type ReactNode, type ToggleEvent, useId, useRef } from "react";

/** Pixels between a button and what it opens. */
const GAP_PX = 6;

/**
 * A button that opens something beside itself: a popover of the browser, which closes by Escape, by a click elsewhere and by the
 * choice of a link or button with `data-closes`. It opens below the button, or above where there is no room.
 */
export function Menu({
  label,
  name,
  className = "",
  children,
  panelClass = "",
}: {
  /** What the button shows. */
  label: ReactNode;
  /** Its name, where it shows no word. */
  name?: string;
  className?: string;
  panelClass?: string;
  children: ReactNode;
}): ReactNode {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const place = ({ newState, currentTarget: panel }: ToggleEvent<HTMLDivElement>) => {
    if (newState === "open" && button.current !== null) placeBeside(button.current.getBoundingClientRect(), panel);
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        className={className}
        popoverTarget={id}
        {...(name !== undefined && { "aria-label": name, title: name })}
      >
        {label}
      </button>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: a click of what is inside, which keys make too */}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: it only closes after what is inside has acted */}
      <div
        id={id}
        popover="auto"
        className={`popover ${panelClass}`}
        onToggle={place}
        onClick={({ target, currentTarget }) => {
          if (target instanceof Element && target.closest("a[href], [data-closes]") !== null)
            currentTarget.hidePopover();
        }}
      >
        {children}
      </div>
    </>
  );
}

function placeBeside(of: DOMRect, panel: HTMLElement): void {
  const { offsetWidth: width, offsetHeight: height, style } = panel;
  const isBelow = of.bottom + GAP_PX + height <= innerHeight;
  const left = of.left + width <= innerWidth - GAP_PX ? of.left : of.right - width;
  style.left = `${Math.max(GAP_PX, Math.min(left, innerWidth - width - GAP_PX))}px`;
  style.top = `${Math.max(GAP_PX, isBelow ? of.bottom + GAP_PX : of.top - GAP_PX - height)}px`;
}
