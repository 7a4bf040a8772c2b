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
 * A page that is loaded when it is opened. The router's own way reloads everything when a file is not there: with the server
 * gone, what is on the page would be lost too. Here it is told, and loaded anew by whoever wants to.
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
