import { useEffect } from "react";

/** Names the page in the browser's tab, and takes the name away with it. What is urgent stands first: tabs are narrow. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title.slice(0, 120)} · flow`;
    return () => {
      document.title = "flow";
    };
  }, [title]);
}
