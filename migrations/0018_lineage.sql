-- Lineage finds what came from an execution, also by way of deleted ones. The table holds a row for each deleted execution from which
-- others descend: it was made with the version before, and building its indexes takes milliseconds.
CREATE INDEX "deleted_execution_for_children" ON "flow"."deleted_execution" USING btree ("parent_execution_id","execution_id") WHERE parent_execution_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX "deleted_execution_for_reruns" ON "flow"."deleted_execution" USING btree ("rerun_of","execution_id") WHERE rerun_of IS NOT NULL;