import { type ComponentType, createContext } from "react";

/**
 * How a value within another one is shown. The view of values gives itself to what it shows, so that a reference, a manifest or
 * a tree can show what it holds without importing the view that imports it.
 */
export const ShownValue = createContext<ComponentType<{ value: unknown; label: string }>>(() => null);
