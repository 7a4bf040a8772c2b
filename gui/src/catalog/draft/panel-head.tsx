import { type ReactNode, useEffect, useRef } from "react";

/** The title of a panel below the text, which has the focus when it opens, and the button that closes it. */
export function PanelHead({ id, title, onClose }: { id: string; title: string; onClose(): void }): ReactNode {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  return (
    <div className="row spread">
      <h2 id={id} ref={heading} tabIndex={-1}>
        {title}
      </h2>
      <button type="button" onClick={onClose}>
        Close
      </button>
    </div>
  );
}
