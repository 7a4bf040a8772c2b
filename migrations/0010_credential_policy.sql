-- Credentials are for the playbooks that their `meta` lists. Those without a list were for all: where one is there, this goes on (`open`);
-- elsewhere they are for none (`restricted`). FLOW_CREDENTIALS_DEFAULT overrides it. A new table; credentials are read and not written.
CREATE TABLE "flow"."credential_policy" (
	"singleton" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"by_default" text NOT NULL,
	CONSTRAINT "credential_policy_singleton" CHECK (singleton),
	CONSTRAINT "credential_policy_by_default" CHECK (by_default IN ('open', 'restricted'))
);
--> statement-breakpoint
INSERT INTO "flow"."credential_policy" ("by_default")
SELECT CASE
	WHEN EXISTS (SELECT FROM "flow"."credential" WHERE coalesce("meta" -> 'playbooks', 'null') = 'null') THEN 'open'
	ELSE 'restricted'
END;
