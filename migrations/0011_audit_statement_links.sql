-- The audit log's chains at a fifth of the cost: a statement writes the head of its chain once instead of with each row, and the
-- text that is hashed is made by one call. Functions and triggers by hand; no row is read or written. Rows that are there keep their
-- hashes, and `flow audit verify` takes both texts. Servers of the version before go on: their rows are linked by these triggers.

-- What is hashed of a row: its columns as SQL literals, so that no two rows have one text (services/access/audit-chain). One call
-- with many arguments: PostgreSQL sets an expression up anew in each transaction, which cost more than the hash itself.
CREATE OR REPLACE FUNCTION "auth"."audit_hash"(entry "auth"."audit_log") RETURNS text LANGUAGE sql STABLE AS $$
	SELECT encode(sha256(convert_to(format('%L,%L,%L,%L,%L,%L,%L,%L,%L,%L,%L,%L,%L,%L,%L,%L,%L,%L,%L,%L',
		entry.chain, entry.chain_seq, entry.previous_hash, entry.audit_id, (extract(epoch FROM entry.at) * 1000)::bigint,
		entry.actor_kind, entry.actor, entry.user_id, entry.issuer, entry.subject, entry.action, entry.resource, entry.rule,
		entry.result, entry.address, entry.request_id, entry.execution_id, entry.command_id, entry.attempt, entry.detail),
		'UTF8')), 'hex')
$$;
DROP FUNCTION "auth"."audit_part"(text);

-- The first row of a statement takes the first chain that no open transaction holds, the others follow on it. Where the chain has
-- come to is in a setting until the statement ends. Any account can change that setting, so "audit_log_linked" checks what came of it.
-- Chains run side by side because one alone would let the commits of all transactions that add a row wait for each other.
-- Who may insert needs no right on the chains: this runs as their owner. Other accounts than the owner's cannot date a row back.
CREATE OR REPLACE FUNCTION "auth"."audit_log_link"() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	last text := current_setting('flow.audit_head', true);
BEGIN
	IF last <> '' THEN
		NEW.chain := split_part(last, ' ', 1)::integer;
		NEW.chain_seq := split_part(last, ' ', 2)::bigint + 1;
		NEW.previous_hash := split_part(last, ' ', 3);
	ELSE
		SELECT chain, last_seq + 1, last_hash INTO NEW.chain, NEW.chain_seq, NEW.previous_hash
			FROM "auth"."audit_chain" ORDER BY chain LIMIT 1 FOR UPDATE SKIP LOCKED;
		IF NOT FOUND THEN
			-- 64 transactions at once. This one waits for another.
			SELECT chain, last_seq + 1, last_hash INTO NEW.chain, NEW.chain_seq, NEW.previous_hash
				FROM "auth"."audit_chain" WHERE chain = 1 + pg_backend_pid() % 64 FOR UPDATE;
		END IF;
	END IF;
	IF session_user <> current_user THEN
		NEW.at := now();
	END IF;
	NEW.hash := "auth"."audit_hash"(NEW);
	last := set_config('flow.audit_head', NEW.chain::text || ' ' || NEW.chain_seq::text || ' ' || NEW.hash, true);
	RETURN NEW;
END
$$;

-- Writes the head of the chain, if the statement's rows follow on it and on each other. Else the statement fails.
CREATE FUNCTION "auth"."audit_log_linked"() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	entry record;
	first record;
	last record;
	fits boolean := true;
BEGIN
	FOR entry IN SELECT chain, chain_seq, previous_hash, hash FROM added LOOP
		IF last IS NULL THEN
			first := entry;
		ELSE
			fits := fits AND entry.chain = last.chain AND entry.chain_seq = last.chain_seq + 1 AND entry.previous_hash = last.hash;
		END IF;
		last := entry;
	END LOOP;
	IF last IS NULL THEN
		RETURN NULL;
	END IF;
	UPDATE "auth"."audit_chain" SET last_seq = last.chain_seq, last_hash = last.hash
		WHERE fits AND chain = first.chain AND last_seq = first.chain_seq - 1 AND last_hash = first.previous_hash;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'auth.audit_log: the rows of this statement do not follow on chain %', first.chain
			USING ERRCODE = 'insufficient_privilege',
				HINT = 'A statement inserts into auth.audit_log in one place, without ON CONFLICT, and nothing sets flow.audit_head.';
	END IF;
	PERFORM set_config('flow.audit_head', '', true);
	RETURN NULL;
END
$$;
CREATE TRIGGER "audit_log_linked" AFTER INSERT ON "auth"."audit_log" REFERENCING NEW TABLE AS added
	FOR EACH STATEMENT EXECUTE FUNCTION "auth"."audit_log_linked"();

-- Chains change with the log alone: within a trigger of it. A condition is cheaper than a call.
CREATE OR REPLACE FUNCTION "auth"."audit_chain_guard"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'auth.audit_chain belongs to the audit log: % refused', TG_OP USING ERRCODE = 'insufficient_privilege';
END
$$;
DROP TRIGGER "audit_chain_guard" ON "auth"."audit_chain";
CREATE TRIGGER "audit_chain_guard" BEFORE INSERT OR DELETE ON "auth"."audit_chain"
	FOR EACH ROW EXECUTE FUNCTION "auth"."audit_chain_guard"();
CREATE TRIGGER "audit_chain_guard_update" BEFORE UPDATE ON "auth"."audit_chain"
	FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION "auth"."audit_chain_guard"();
