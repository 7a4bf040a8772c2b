/** Whether keys are typed into a field. A checkbox uses only the space key. */
export function isWriting(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    target.closest("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable], dialog") !== null
  );
}
