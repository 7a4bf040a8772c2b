-- A step that is completed by hand has a result too: views over segments show it, as rows of their own do.
CREATE OR REPLACE FUNCTION "flow"."event_result"("type" text, "event" json) RETURNS json LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
	SELECT CASE
		WHEN "type" LIKE 'batch.%' THEN json_build_object('status', 'ok', 'context', "event" -> 'context')
		WHEN NOT flow.event_has_result("type") AND "event" -> 'result' IS NULL THEN NULL
		ELSE (
			SELECT json_object_agg(key, value) FROM (
				SELECT 'status' AS key,
					coalesce("event" -> 'status', to_json(CASE WHEN "event" -> 'error' IS NULL THEN 'ok' ELSE 'error' END)) AS value
				UNION ALL SELECT 'reference', "event" -> 'result' -> 'ref'
				UNION ALL SELECT 'context', coalesce((
					SELECT json_object_agg(key, value) FROM (
						-- Who gave a result by hand, and why, is in its meta.
						SELECT key, value FROM json_each(flow.event_rest("event")) WHERE flow.event_has_result("type")
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
