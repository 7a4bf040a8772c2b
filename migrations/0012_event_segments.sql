-- The events that one flush writes of an execution become one row, a segment: a JSON array of the engine's events. PostgreSQL writes a
-- row of text for less than half of what it needs for five rows of 22 columns. Rows that are there stay as they are, and both are read.
--
-- By hand: only the catalog changes, no row is read or written, so the lock on the log lasts for milliseconds. `flow.event` goes on as a view with
-- the same columns. A server of the version before this one may still run: it reads the view, inserts rows of single events there,
-- and deletes executions through it.
ALTER TABLE "flow"."event" RENAME TO "event_log";
--> statement-breakpoint
ALTER TABLE "flow"."event_log"
	ALTER COLUMN "event_type" DROP NOT NULL,
	ALTER COLUMN "node_id" DROP NOT NULL,
	ALTER COLUMN "node_name" DROP NOT NULL,
	ALTER COLUMN "node_type" DROP NOT NULL,
	ALTER COLUMN "status" DROP NOT NULL,
	ADD COLUMN "events" smallint,
	ADD COLUMN "body" text;
--> statement-breakpoint
-- Of results, and not compressed for the same reason as those: compressing costs more than writing.
ALTER TABLE "flow"."event_log" ALTER COLUMN "body" SET STORAGE EXTERNAL;
--> statement-breakpoint
-- A segment of up to 8 KB stays in its row; by default rows above 2 KB are taken apart, which costs two rows more and their index.
DO $$
DECLARE
	name text;
BEGIN
	FOR name IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'flow.event_log'::regclass LOOP
		EXECUTE format('ALTER TABLE flow.%I SET (toast_tuple_target = 8160)', name);
	END LOOP;
END $$;
--> statement-breakpoint
-- An event's status, result and meta, as in src/schema/rules/event-record.ts; tests hold the two equal.
CREATE FUNCTION "flow"."event_status"("type" text, "status" text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
	SELECT CASE
		WHEN "type" = 'task.done' THEN CASE "status" WHEN 'ok' THEN 'COMPLETED' ELSE 'FAILED' END
		WHEN "type" LIKE '%.error' THEN 'FAILED'
		WHEN "type" LIKE '%.issued' THEN 'PENDING'
		WHEN "type" LIKE '%.initialized' OR "type" LIKE '%.started' OR "type" LIKE '%.progress' THEN 'RUNNING'
		WHEN "type" LIKE '%.done' OR "type" LIKE '%.stored' OR "type" LIKE '%.evaluated' THEN 'COMPLETED'
		ELSE upper(substring("type" from '[^.]*$'))
	END
$$;
--> statement-breakpoint
-- The fields of an event that have no column of their own; null where there are none.
CREATE FUNCTION "flow"."event_rest"("event" json) RETURNS json LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
	SELECT json_object_agg(key, value) FROM json_each("event")
	WHERE key NOT IN ('event_id', 'parent_event_id', 'parent_execution_id', 'type', 'at', 'step', 'task', 'status', 'result', 'command_id',
		'worker', 'attempt', 'iteration', 'page', 'step_run_id', 'task_run_id', 'duration_ms', 'error')
$$;
--> statement-breakpoint
CREATE FUNCTION "flow"."event_has_result"("type" text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
	SELECT "type" IN ('task.done', 'command.completed', 'command.failed', 'loop.iteration.completed', 'loop.iteration.failed')
$$;
--> statement-breakpoint
CREATE FUNCTION "flow"."event_result"("type" text, "event" json) RETURNS json LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
	SELECT CASE
		WHEN "type" LIKE 'batch.%' THEN json_build_object('status', 'ok', 'context', "event" -> 'context')
		WHEN NOT flow.event_has_result("type") THEN NULL
		ELSE (
			SELECT json_object_agg(key, value) FROM (
				SELECT 'status' AS key,
					coalesce("event" -> 'status', to_json(CASE WHEN "event" -> 'error' IS NULL THEN 'ok' ELSE 'error' END)) AS value
				UNION ALL SELECT 'reference', "event" -> 'result' -> 'ref'
				UNION ALL SELECT 'context', coalesce((
					SELECT json_object_agg(key, value) FROM (
						SELECT key, value FROM json_each(flow.event_rest("event"))
						UNION ALL SELECT 'task', "event" -> 'task'
						UNION ALL SELECT 'value', "event" -> 'result' -> 'value'
						UNION ALL SELECT 'virtual', "event" -> 'result' -> 'virtual'
						UNION ALL SELECT 'about', "event" -> 'result' -> 'about'
					) AS context WHERE value IS NOT NULL
				), '{}')
			) AS envelope WHERE value IS NOT NULL
		)
	END
$$;
--> statement-breakpoint
CREATE VIEW "flow"."event" AS
SELECT "event_id", "execution_id", "catalog_id", "event_type", "node_id", "node_name", "node_type", "status", "created_at",
	"parent_event_id", "parent_execution_id", "command_id", "worker", "attempt", "iteration", "page", "step_run_id",
	"task_run_id", "duration_ms", "result", "error", "meta"
FROM "flow"."event_log"
WHERE "body" IS NULL
UNION ALL
SELECT e."event_id", l."execution_id", l."catalog_id", e."type", coalesce(e."step", l."node_id"), coalesce(e."task", e."step", l."node_id"),
	CASE WHEN e."task" IS NOT NULL THEN 'task' WHEN e."step" IS NOT NULL THEN 'step' ELSE 'playbook' END,
	flow.event_status(e."type", e."status"), to_timestamp(floor(e."at") / 1000)::timestamp (3) with time zone,
	e."parent_event_id", e."parent_execution_id", e."command_id", e."worker", e."attempt", e."iteration", e."page",
	e."step_run_id", e."task_run_id", e."duration_ms", flow.event_result(e."type", packed.event), e."error",
	CASE WHEN NOT flow.event_has_result(e."type") AND e."type" NOT LIKE 'batch.%' THEN flow.event_rest(packed.event) END
FROM "flow"."event_log" l
CROSS JOIN LATERAL json_array_elements(l."body"::json) AS packed (event)
CROSS JOIN LATERAL json_to_record(packed.event) AS e (
	"event_id" bigint, "type" text, "step" text, "task" text, "status" text, "at" double precision, "parent_event_id" bigint,
	"parent_execution_id" bigint, "command_id" bigint, "worker" text, "attempt" integer, "iteration" bigint, "page" bigint,
	"step_run_id" text, "task_run_id" text, "duration_ms" double precision, "error" json)
WHERE l."body" IS NOT NULL;
--> statement-breakpoint
CREATE FUNCTION "flow"."event_insert"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO flow.event_log (event_id, execution_id, catalog_id, event_type, node_id, node_name, node_type, status, created_at,
		parent_event_id, parent_execution_id, command_id, worker, attempt, iteration, page, step_run_id, task_run_id,
		duration_ms, result, error, meta)
	VALUES (new.event_id, new.execution_id, new.catalog_id, new.event_type, new.node_id, new.node_name, new.node_type, new.status,
		coalesce(new.created_at, now()), new.parent_event_id, new.parent_execution_id, new.command_id, new.worker, new.attempt,
		new.iteration, new.page, new.step_run_id, new.task_run_id, new.duration_ms, new.result, new.error, new.meta);
	RETURN new;
END $$;
--> statement-breakpoint
-- A segment goes with its last event: what is deleted is a whole execution, from its first event to its last.
CREATE FUNCTION "flow"."event_delete"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM flow.event_log WHERE execution_id = old.execution_id AND event_id = old.event_id;
	RETURN old;
END $$;
--> statement-breakpoint
CREATE TRIGGER "event_delete" INSTEAD OF DELETE ON "flow"."event" FOR EACH ROW EXECUTE FUNCTION "flow"."event_delete"();
--> statement-breakpoint
CREATE TRIGGER "event_insert" INSTEAD OF INSERT ON "flow"."event" FOR EACH ROW EXECUTE FUNCTION "flow"."event_insert"();
