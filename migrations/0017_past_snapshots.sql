-- Older states of an execution, so that its state as of any event is near one of them. A new table: nothing waits for it, and servers of
-- the version before go on without it. Its rows are written once and deleted, so its pages need no room for updates.
CREATE TABLE "flow"."past_snapshot" (
	"execution_id" bigint NOT NULL,
	"event_id" bigint NOT NULL,
	"number" integer NOT NULL,
	"format" smallint NOT NULL,
	"state" text NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "past_snapshot_pkey" PRIMARY KEY("execution_id","event_id"),
	CONSTRAINT "past_snapshot_event" CHECK (event_id > execution_id),
	CONSTRAINT "past_snapshot_number" CHECK (number >= 1),
	CONSTRAINT "past_snapshot_format" CHECK (format >= 1)
);
