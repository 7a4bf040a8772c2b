import type { Page } from "playwright-core";

/** Replaces what an editor of the page holds, all at once as a paste does. */
export async function writeDocument(page: Page, text: string): Promise<void> {
  const editor = page.getByRole("textbox", { name: "Document" });
  await editor.click();
  await page.keyboard.press("Control+a");
  await editor.evaluate((element, pasted) => {
    // Of the browser, where this runs.
    const { DataTransfer, ClipboardEvent } = globalThis as unknown as Clipboard;
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", pasted);
    const how = { clipboardData, bubbles: true, cancelable: true, composed: true };
    (element as unknown as { dispatchEvent(event: object): void }).dispatchEvent(new ClipboardEvent("paste", how));
  }, text);
}

interface Clipboard {
  DataTransfer: new () => { setData(type: string, text: string): void };
  ClipboardEvent: new (type: string, how: object) => object;
}
