import type { TestBrowser } from "../../test/support/page/browser.ts";

const COLUMNS = 3;
/** Width of each picture and of what stands between them, pixels. */
const PICTURE = 480;
const GAP = 12;

/** Pictures of pages in one, three in a row. */
export async function shootGrid(browser: TestBrowser, pictures: readonly Buffer[]): Promise<Buffer> {
  const page = await browser.newPage();
  const images = pictures.map((picture) => `<img src="data:image/png;base64,${picture.toString("base64")}">`).join("");
  const style = `
    body { margin: 0; padding: ${GAP}px; background: #e4e6ea; display: grid; gap: ${GAP}px;
      grid-template-columns: repeat(${COLUMNS}, ${PICTURE}px); width: max-content }
    img { width: 100%; border-radius: 6px; display: block }`;
  await page.setContent(`<style>${style}</style>${images}`);
  const picture = await page.locator("body").screenshot();
  await page.close();
  return picture;
}
