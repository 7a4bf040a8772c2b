-- Texts that are run without being registered, apart from the catalog's versions: no list and no look-up by path can meet one. The index has
-- executions of drafts alone, so that others pay a comparison for it; building it reads the table once, in which nothing starts. Servers of the
-- version before go on, and cannot take up an execution of a draft: finish the upgrade of all of them before one is run.
CREATE TABLE "flow"."draft" (
	"catalog_id" bigint PRIMARY KEY NOT NULL,
	"path" text COLLATE "C" NOT NULL,
	"kind" text NOT NULL,
	"content" text NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "draft_kind" CHECK (kind IN ('playbook', 'agent'))
);
--> statement-breakpoint
CREATE INDEX "execution_for_drafts" ON "flow"."execution" USING btree ("catalog_id") WHERE version = 0;