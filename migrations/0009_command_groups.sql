-- The index of claims has the name of what it finds: groups of commands with one requirement. Renamed by hand (drizzle-kit would
-- build it anew): the lock lasts for a change of the catalog, and no row is read.
ALTER INDEX "flow"."command_for_lane" RENAME TO "command_for_group";
