// Biome formats and lints; eslint is here only for the rules that need types: a promise that nobody waits for is a lost error.
import tseslint from "typescript-eslint";

export default tseslint.config(
  {
    ignores: [
      "dist/**",
      ".build-*/**",
      "node_modules/**",
      "eslint.config.js",
      "bin/**",
      ".dependency-cruiser.cjs",
      "playbooks/**/*.mjs",
    ],
  },
  {
    files: ["**/*.ts", "gui/**/*.tsx"],
    languageOptions: {
      parser: tseslint.parser,
      // Named, and not looked for from each file: a language service, which follows changes, takes a third longer for one look at all files.
      parserOptions: { project: ["tsconfig.json", "gui/tsconfig.json"], tsconfigRootDir: import.meta.dirname },
    },
    plugins: { "@typescript-eslint": tseslint.plugin },
    rules: {
      "@typescript-eslint/no-floating-promises": [
        "error",
        // The runner waits for the tests that it is told of.
        {
          allowForKnownSafeCalls: [
            { from: "package", name: ["test", "describe", "it", "suite"], package: "node:test" },
          ],
        },
      ],
      "@typescript-eslint/no-misused-promises": "error",
      "@typescript-eslint/await-thenable": "error",
      "@typescript-eslint/switch-exhaustiveness-check": ["error", { considerDefaultExhaustiveForUnions: true }],
      "@typescript-eslint/no-explicit-any": "error",
    },
  },
);
