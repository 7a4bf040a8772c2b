-- The last deliveries of webhooks, for people: a table of its own, which no other one refers to. Servers of the version before go on, and note
-- none.
CREATE TABLE "flow"."trigger_delivery" (
	"delivery_id" bigint PRIMARY KEY NOT NULL,
	"trigger_id" bigint NOT NULL,
	"verdict" text NOT NULL,
	"is_refused" boolean NOT NULL,
	"reason" text,
	"address" text,
	"bytes" integer,
	"execution_id" bigint,
	"count" integer DEFAULT 1 NOT NULL,
	"first_at" timestamp (3) with time zone NOT NULL,
	"last_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "trigger_delivery_verdict" CHECK (verdict IN ('started', 'queued', 'repeated', 'skipped', 'answered', 'not_verified', 'too_large', 'rate_limited', 'unreadable', 'failed')),
	CONSTRAINT "trigger_delivery_count" CHECK (count >= 1)
);
--> statement-breakpoint
CREATE INDEX "trigger_delivery_for_list" ON "flow"."trigger_delivery" USING btree ("trigger_id","is_refused","delivery_id");
