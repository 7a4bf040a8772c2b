-- What started an execution, where its parent or its user does not say it; and its labels. Columns that may be empty and a table without
-- rows. Building the index of errors and checking the rows that are there reads the table of executions: starts wait for that, about a
-- second for a million rows.
--
-- By hand: the code and the step of an error. An error is kept as it was written, and PostgreSQL refuses to read texts with U+0000 or
-- half a character in it: such an error has neither here.
CREATE FUNCTION "flow"."error_part"("error" json, "part" text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
	SELECT CASE WHEN "error"::text !~* '\\u(0000|d[89a-f])' THEN "error" ->> "part" END
$$;
--> statement-breakpoint
CREATE TABLE "flow"."execution_label" (
	"execution_id" bigint NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"value" text COLLATE "C" NOT NULL,
	CONSTRAINT "execution_label_execution_id_name_pk" PRIMARY KEY("execution_id","name")
);
--> statement-breakpoint
ALTER TABLE "flow"."execution" ADD COLUMN "started_kind" text;--> statement-breakpoint
ALTER TABLE "flow"."execution" ADD COLUMN "started_id" bigint;--> statement-breakpoint
ALTER TABLE "flow"."execution" ADD COLUMN "started_name" text;--> statement-breakpoint
CREATE INDEX "execution_label_for_list" ON "flow"."execution_label" USING btree ("name","value","execution_id");--> statement-breakpoint
CREATE INDEX "execution_for_list_by_origin" ON "flow"."execution" USING btree ("started_kind","execution_id") WHERE started_kind IS NOT NULL;--> statement-breakpoint
CREATE INDEX "execution_for_list_by_origin_id" ON "flow"."execution" USING btree ("started_id","execution_id") WHERE started_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX "execution_for_list_by_error" ON "flow"."execution" USING btree (flow.error_part(error, 'code'),"execution_id") WHERE error IS NOT NULL;--> statement-breakpoint
ALTER TABLE "flow"."execution" ADD CONSTRAINT "execution_started" CHECK (CASE WHEN started_kind IS NULL THEN num_nonnulls(started_id, started_name) = 0
        ELSE started_kind IN ('user', 'trigger', 'execution', 'rerun', 'bulk', 'mcp') END);