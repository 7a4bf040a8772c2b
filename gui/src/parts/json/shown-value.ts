import { type ComponentType, createContext } from "react";

/**
 * How to show a value within another one. The value view passes itself to its children, so that a reference, a manifest or a
 * tree can show its contents without importing the view that imports it.
 */
export const ShownValue = createContext<ComponentType<{ value: unknown; label: string }>>(() => null);
