import { defineConfig } from "drizzle-kit";

/** `npx drizzle-kit generate --name <what_changes>` writes the next migration; read and complete it by hand. */
export default defineConfig({
  dialect: "postgresql",
  schema: ["./src/repositories/tables/*.ts"],
  out: "./migrations",
  schemaFilter: ["flow", "auth"],
});
