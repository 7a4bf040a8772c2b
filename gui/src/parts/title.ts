import { useEffect } from "react";

/** What stands in the browser's tab of a page: its own name first, because tabs are narrow. */
export function titleText(title: string): string {
  return title === "" ? "flow" : `${title.slice(0, 120)} · flow`;
}

/** Names the page in the browser's tab, until another page is opened: the shell names that by its address. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = titleText(title);
  }, [title]);
}
