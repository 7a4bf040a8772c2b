import { access } from "node:fs/promises";

/** True when something is at a path. False also where this process may not look. */
export async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
