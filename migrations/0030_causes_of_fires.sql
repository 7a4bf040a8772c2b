-- Lineage finds what the end of an execution has started by a trigger. An index of fires that have a cause, which are few: building it reads the
-- table once, a second for a million fires, in which no trigger fires. Servers of the version before go on.
CREATE INDEX "trigger_fire_for_cause" ON "flow"."trigger_fire" USING btree ("cause_id","execution_id") WHERE cause_id IS NOT NULL;