-- Iterations that people end by hand, of commands that workers have: heartbeats tell it. An empty column: the table is locked for a moment and
-- not rewritten.
ALTER TABLE "flow"."command" ADD COLUMN "stopped_iterations" integer[];