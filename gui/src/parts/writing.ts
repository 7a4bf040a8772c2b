/** Whether keys are text here. A box that is ticked takes none but the space. */
export function isWriting(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    target.closest("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable], dialog") !== null
  );
}
