import { lazyRouteComponent as lazyOnce } from "@tanstack/react-router";
import { missed } from "../api/reach.ts";

/** A part of the page could not be loaded: the server is gone, or was updated and has other files now. */
export class PartMissing extends Error {
  constructor(cause: unknown) {
    super("A part of this page could not be loaded", { cause });
    this.name = "PartMissing";
  }
}

/**
 * A page that is loaded when it is opened. The router's own way reloads the whole page when a file is missing: with the server
 * down, everything shown would be lost too. Here the error is shown with a button to load again.
 */
export function lazyRouteComponent<Module extends Record<string, unknown>, Name extends keyof Module & string>(
  load: () => Promise<Module>,
  name: Name,
) {
  return lazyOnce(async () => {
    try {
      return await load();
    } catch (error) {
      // Whether the server is there is looked up.
      missed();
      throw new PartMissing(error);
    }
  }, name);
}
