-- Approvals for people. New tables, and one more word in a check of a small table, which is read once. Servers and workers of the version before
-- refuse reports of commands that wait for people: finish the upgrade of all of them before playbooks with `approval:` run.
CREATE TABLE "flow"."approval" (
	"approval_id" bigint PRIMARY KEY NOT NULL,
	"execution_id" bigint NOT NULL,
	"command_id" bigint NOT NULL,
	"step" text NOT NULL,
	"iteration" integer,
	"path" text COLLATE "C" NOT NULL,
	"title" text NOT NULL,
	"description" text,
	"form" json,
	"approvers" text[] NOT NULL,
	"by_path" boolean NOT NULL,
	"not_starter" boolean NOT NULL,
	"required" integer NOT NULL,
	"rejections" integer NOT NULL,
	"link_login" boolean NOT NULL,
	"status" text NOT NULL,
	"opened_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"due_at" timestamp (3) with time zone,
	"closed_at" timestamp (3) with time zone,
	CONSTRAINT "approval_status" CHECK (status IN ('open', 'approved', 'rejected', 'expired', 'cancelled')),
	CONSTRAINT "approval_end" CHECK ((closed_at IS NULL) = (status = 'open'))
);
--> statement-breakpoint
CREATE TABLE "flow"."approval_decision" (
	"approval_id" bigint NOT NULL,
	"decided_by" text NOT NULL,
	"decision" text NOT NULL,
	"decided_at" timestamp (3) with time zone NOT NULL,
	"data" json,
	"comment" text,
	"link" integer,
	CONSTRAINT "approval_decision_pkey" PRIMARY KEY("approval_id","decided_by"),
	CONSTRAINT "approval_decision_word" CHECK (decision IN ('approve', 'reject'))
);
--> statement-breakpoint
CREATE TABLE "flow"."approval_message" (
	"approval_id" bigint NOT NULL,
	"number" integer NOT NULL,
	"playbook" text NOT NULL,
	"input" json NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"taken_until" timestamp (3) with time zone,
	"sent_at" timestamp (3) with time zone,
	"sent_execution_id" bigint,
	"error" text,
	CONSTRAINT "approval_message_pkey" PRIMARY KEY("approval_id","number")
);
--> statement-breakpoint
ALTER TABLE "flow"."wait" DROP CONSTRAINT "wait_kind";--> statement-breakpoint
CREATE INDEX "approval_for_open" ON "flow"."approval" USING btree ("approval_id") WHERE status = 'open';--> statement-breakpoint
CREATE INDEX "approval_for_execution" ON "flow"."approval" USING btree ("execution_id");--> statement-breakpoint
CREATE INDEX "approval_message_for_work" ON "flow"."approval_message" USING btree ("created_at") WHERE sent_at IS NULL;--> statement-breakpoint
ALTER TABLE "flow"."wait" ADD CONSTRAINT "wait_kind" CHECK (kind IN ('timer', 'signal', 'approval', 'retry'));