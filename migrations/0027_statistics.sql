-- Statistics of executions that have ended. New tables: nothing waits for them. What servers of the version before end while both versions
-- run is not counted.
CREATE TABLE "flow"."statistic" (
	"seconds" integer NOT NULL,
	"path" text COLLATE "C" NOT NULL,
	"at" timestamp (3) with time zone NOT NULL,
	"completed" integer DEFAULT 0 NOT NULL,
	"failed" integer DEFAULT 0 NOT NULL,
	"cancelled" integer DEFAULT 0 NOT NULL,
	"took_buckets" smallint[] DEFAULT '{}' NOT NULL,
	"took_counts" integer[] DEFAULT '{}' NOT NULL,
	"waited_buckets" smallint[] DEFAULT '{}' NOT NULL,
	"waited_counts" integer[] DEFAULT '{}' NOT NULL,
	CONSTRAINT "statistic_pkey" PRIMARY KEY("seconds","path","at"),
	CONSTRAINT "statistic_seconds" CHECK (seconds IN (60, 3600, 86400))
);
--> statement-breakpoint
CREATE TABLE "flow"."statistic_backlog" (
	"execution_id" bigint PRIMARY KEY NOT NULL,
	"ended_before" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "flow"."step_statistic" (
	"seconds" integer NOT NULL,
	"path" text COLLATE "C" NOT NULL,
	"at" timestamp (3) with time zone NOT NULL,
	"step" text COLLATE "C" NOT NULL,
	"runs" integer DEFAULT 0 NOT NULL,
	"failed" integer DEFAULT 0 NOT NULL,
	"took_buckets" smallint[] DEFAULT '{}' NOT NULL,
	"took_counts" integer[] DEFAULT '{}' NOT NULL,
	CONSTRAINT "step_statistic_pkey" PRIMARY KEY("seconds","path","at","step"),
	CONSTRAINT "step_statistic_seconds" CHECK (seconds IN (3600, 86400))
);
--> statement-breakpoint
CREATE TABLE "flow"."uncounted_execution" (
	"execution_id" bigint PRIMARY KEY NOT NULL,
	"path" text COLLATE "C" NOT NULL,
	"status" text NOT NULL,
	"ended_at" timestamp (3) with time zone NOT NULL,
	"tally" json NOT NULL
);
--> statement-breakpoint
CREATE INDEX "statistic_for_time" ON "flow"."statistic" USING btree ("seconds","at");--> statement-breakpoint
CREATE INDEX "step_statistic_for_time" ON "flow"."step_statistic" USING btree ("seconds","at");
--> statement-breakpoint
-- By hand: what had ended before is counted by the servers, in the background.
INSERT INTO "flow"."statistic_backlog" ("execution_id", "ended_before") VALUES (0, now());
