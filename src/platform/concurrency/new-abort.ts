import { setMaxListeners } from "node:events";

/** For a signal that any number of commands and iterations of loops listen to: Node takes eleven listeners for a leak. */
export function newAbort(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}
