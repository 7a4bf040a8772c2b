-- The schema after all migrations, as the database describes it. Written by: FLOW_UPDATE=1 npm test -- repositories/tables/schema
table approval
  approval_id bigint not null
  execution_id bigint not null
  command_id bigint not null
  step text not null
  iteration integer
  path text collate "C" not null
  title text not null
  description text
  form json
  approvers text[] not null
  by_path boolean not null
  not_starter boolean not null
  required integer not null
  rejections integer not null
  link_login boolean not null
  status text not null
  opened_at timestamp(3) with time zone not null default now()
  due_at timestamp(3) with time zone
  closed_at timestamp(3) with time zone
  approval_end CHECK (((closed_at IS NULL) = (status = 'open'::text)))
  approval_status CHECK ((status = ANY (ARRAY['open'::text, 'approved'::text, 'rejected'::text, 'expired'::text, 'cancelled'::text])))
  approval_pkey PRIMARY KEY (approval_id)
  INDEX approval_for_execution btree (execution_id)
  INDEX approval_for_open btree (approval_id) WHERE (status = 'open'::text)

table approval_decision
  approval_id bigint not null
  decided_by text not null
  decision text not null
  decided_at timestamp(3) with time zone not null
  data json
  comment text
  link integer
  approval_decision_word CHECK ((decision = ANY (ARRAY['approve'::text, 'reject'::text])))
  approval_decision_pkey PRIMARY KEY (approval_id, decided_by)

table approval_message
  approval_id bigint not null
  number integer not null
  playbook text not null
  input json not null
  created_at timestamp(3) with time zone not null default now()
  taken_until timestamp(3) with time zone
  sent_at timestamp(3) with time zone
  sent_execution_id bigint
  error text
  addressee text
  approval_message_pkey PRIMARY KEY (approval_id, number)
  INDEX approval_message_for_work btree (created_at) WHERE (sent_at IS NULL)

table batch with autovacuum_vacuum_cost_delay=0, autovacuum_vacuum_scale_factor=0.01, fillfactor=70
  request_id bigint not null
  caller text not null
  idempotency_key text
  body_sha256 text not null
  state text not null default 'accepted'::text
  code text
  message text
  execution_ids bigint[] not null
  event_ids bigint[] not null
  commands_generated integer not null default 0
  processor text
  lease_expires_at timestamp(3) with time zone
  created_at timestamp(3) with time zone not null default now()
  updated_at timestamp(3) with time zone not null default now()
  batch_code CHECK (((code IS NOT NULL) = (state = 'failed'::text)))
  batch_commands CHECK ((commands_generated >= 0))
  batch_lease CHECK ((num_nulls(processor, lease_expires_at) =
CASE
    WHEN (state = 'processing'::text) THEN 0
    ELSE 2
END))
  batch_state CHECK ((state = ANY (ARRAY['accepted'::text, 'processing'::text, 'completed'::text, 'failed'::text])))
  batch_pkey PRIMARY KEY (request_id)
  UNIQUE INDEX batch_for_idempotency btree (caller, idempotency_key) WHERE (idempotency_key IS NOT NULL)
  INDEX batch_for_recovery btree (request_id) WHERE (state = ANY (ARRAY['accepted'::text, 'processing'::text]))

table bulk
  bulk_id bigint not null
  action text not null
  status text not null
  filter jsonb not null
  options jsonb not null
  asked_by text not null
  user_id bigint
  matched integer not null default 0
  done integer not null default 0
  failed integer not null default 0
  skipped integer not null default 0
  worker text
  lease_expires_at timestamp(3) with time zone
  created_at timestamp(3) with time zone not null default now()
  updated_at timestamp(3) with time zone not null default now()
  ended_at timestamp(3) with time zone
  asker jsonb not null default '{}'::jsonb
  caller text
  idempotency_key text
  body_sha256 text
  bulk_action CHECK ((action = ANY (ARRAY['cancel'::text, 'pause'::text, 'resume'::text, 'rerun'::text, 'backfill'::text])))
  bulk_counts CHECK (((LEAST(done, failed, skipped) >= 0) AND (((done + failed) + skipped) <= matched)))
  bulk_end CHECK (((ended_at IS NOT NULL) = (status = ANY (ARRAY['completed'::text, 'cancelled'::text]))))
  bulk_idempotency CHECK ((num_nulls(caller, idempotency_key, body_sha256) = ANY (ARRAY[0, 3])))
  bulk_lease CHECK ((num_nulls(worker, lease_expires_at) = ANY (ARRAY[0, 2])))
  bulk_status CHECK ((status = ANY (ARRAY['running'::text, 'paused'::text, 'completed'::text, 'cancelled'::text])))
  bulk_pkey PRIMARY KEY (bulk_id)
  UNIQUE INDEX bulk_for_idempotency btree (caller, idempotency_key) WHERE (idempotency_key IS NOT NULL)
  INDEX bulk_for_retention btree (ended_at) WHERE (ended_at IS NOT NULL)
  INDEX bulk_for_work btree (updated_at) WHERE ((status = 'running'::text) OR (worker IS NOT NULL))

table bulk_item
  bulk_id bigint not null
  execution_id bigint not null
  state text not null default 'pending'::text
  code text
  message text
  new_execution_id bigint
  due_at timestamp(3) with time zone
  bulk_item_state CHECK ((state = ANY (ARRAY['pending'::text, 'begun'::text, 'done'::text, 'failed'::text, 'skipped'::text])))
  bulk_item_why CHECK ((((code IS NULL) = (message IS NULL)) AND ((code IS NOT NULL) OR (state <> 'failed'::text))))
  bulk_item_pkey PRIMARY KEY (bulk_id, execution_id)
  INDEX bulk_item_for_failures btree (bulk_id, execution_id) WHERE (state = 'failed'::text)
  INDEX bulk_item_for_started btree (bulk_id, execution_id) WHERE (new_execution_id IS NOT NULL)
  INDEX bulk_item_for_work btree (bulk_id, execution_id) WHERE (state = ANY (ARRAY['pending'::text, 'begun'::text]))

table catalog
  catalog_id bigint not null
  path text collate "C" not null
  version integer not null
  kind text not null
  content text not null
  payload jsonb not null
  metadata jsonb not null
  created_at timestamp(3) with time zone not null default now()
  catalog_kind CHECK ((kind = ANY (ARRAY['playbook'::text, 'agent'::text, 'mcp'::text, 'trigger'::text])))
  catalog_version CHECK ((version >= 1))
  catalog_pkey PRIMARY KEY (catalog_id)
  catalog_path_version UNIQUE (path, version)

table command with autovacuum_vacuum_cost_delay=0, autovacuum_vacuum_scale_factor=0.01, fillfactor=60
  command_id bigint not null
  execution_id bigint not null
  catalog_id bigint not null
  step text not null
  status text not null default 'PENDING'::text
  attempt integer not null default 0
  kinds text[] not null
  labels jsonb
  body json not null
  worker text
  claimed_at timestamp(3) with time zone
  lease_expires_at timestamp(3) with time zone
  created_at timestamp(3) with time zone not null default now()
  ended_at timestamp(3) with time zone
  stopped_iterations integer[]
  command_after_execution CHECK ((command_id > execution_id))
  command_attempt CHECK (((attempt >= 0) AND ((attempt > 0) OR (status = ANY (ARRAY['PENDING'::text, 'PAUSED'::text, 'CANCELLED'::text])))))
  command_ended CHECK (((ended_at IS NOT NULL) = (status = ANY (ARRAY['COMPLETED'::text, 'FAILED'::text, 'CANCELLED'::text]))))
  command_lease CHECK ((num_nulls(worker, claimed_at, lease_expires_at) =
CASE
    WHEN (status = ANY (ARRAY['CLAIMED'::text, 'RUNNING'::text])) THEN 0
    ELSE 3
END))
  command_status CHECK ((status = ANY (ARRAY['PENDING'::text, 'PAUSED'::text, 'PARKED'::text, 'CLAIMED'::text, 'RUNNING'::text, 'COMPLETED'::text, 'FAILED'::text, 'CANCELLED'::text])))
  command_pkey PRIMARY KEY (command_id)
  INDEX command_for_cancel btree (execution_id) WHERE (status = ANY (ARRAY['PENDING'::text, 'PAUSED'::text, 'PARKED'::text, 'CLAIMED'::text, 'RUNNING'::text]))
  INDEX command_for_claim btree (command_id) WHERE (status = 'PENDING'::text)
  INDEX command_for_group btree (kinds, COALESCE(jsonb_hash_extended(labels, (0)::bigint), (1)::bigint), command_id) WHERE (status = 'PENDING'::text)
  INDEX command_for_reaper btree (worker, command_id) WHERE (status = ANY (ARRAY['CLAIMED'::text, 'RUNNING'::text]))

table credential
  id bigint not null
  name text not null
  type text not null
  data_encrypted text not null
  schema jsonb
  meta jsonb
  tags text[]
  description text
  created_at timestamp(3) with time zone not null default now()
  updated_at timestamp(3) with time zone not null default now()
  credential_name_given CHECK (((name <> ''::text) AND (type <> ''::text)))
  credential_pkey PRIMARY KEY (id)
  credential_name UNIQUE (name)

table credential_policy
  singleton boolean not null default true
  by_default text not null
  credential_policy_by_default CHECK ((by_default = ANY (ARRAY['open'::text, 'restricted'::text])))
  credential_policy_singleton CHECK (singleton)
  credential_policy_pkey PRIMARY KEY (singleton)

table deleted_execution
  execution_id bigint not null
  path text collate "C" not null
  version integer not null
  status text not null
  parent_execution_id bigint
  rerun_of bigint
  deleted_at timestamp(3) with time zone not null default now()
  deleted_execution_pkey PRIMARY KEY (execution_id)
  INDEX deleted_execution_for_children btree (parent_execution_id, execution_id) WHERE (parent_execution_id IS NOT NULL)
  INDEX deleted_execution_for_reruns btree (rerun_of, execution_id) WHERE (rerun_of IS NOT NULL)

table draft
  catalog_id bigint not null
  path text collate "C" not null
  kind text not null
  content text not null
  created_at timestamp(3) with time zone not null default now()
  draft_kind CHECK ((kind = ANY (ARRAY['playbook'::text, 'agent'::text])))
  draft_pkey PRIMARY KEY (catalog_id)

table event_default partition DEFAULT with toast_tuple_target=8160
  event_id bigint not null
  execution_id bigint not null
  catalog_id bigint not null
  event_type text
  node_id text
  node_name text
  node_type text
  status text
  created_at timestamp(3) with time zone not null default now()
  parent_event_id bigint
  parent_execution_id bigint
  command_id bigint
  worker text
  attempt integer
  iteration bigint
  page bigint
  step_run_id text
  task_run_id text
  duration_ms double precision
  result json storage e
  error json
  meta json
  events smallint
  body text storage e
  event_after_execution CHECK ((event_id > execution_id))
  event_attempt CHECK ((attempt >= 0))
  event_duration CHECK ((duration_ms >= (0)::double precision))
  event_id_range CHECK (((event_id > 0) AND (event_id < '9007199254740992'::bigint)))
  event_node_type CHECK ((node_type = ANY (ARRAY['playbook'::text, 'step'::text, 'task'::text])))
  event_default_pkey PRIMARY KEY (execution_id, event_id)

table event_log partition by RANGE (event_id)
  event_id bigint not null
  execution_id bigint not null
  catalog_id bigint not null
  event_type text
  node_id text
  node_name text
  node_type text
  status text
  created_at timestamp(3) with time zone not null default now()
  parent_event_id bigint
  parent_execution_id bigint
  command_id bigint
  worker text
  attempt integer
  iteration bigint
  page bigint
  step_run_id text
  task_run_id text
  duration_ms double precision
  result json storage e
  error json
  meta json
  events smallint
  body text storage e
  event_after_execution CHECK ((event_id > execution_id))
  event_attempt CHECK ((attempt >= 0))
  event_duration CHECK ((duration_ms >= (0)::double precision))
  event_id_range CHECK (((event_id > 0) AND (event_id < '9007199254740992'::bigint)))
  event_node_type CHECK ((node_type = ANY (ARRAY['playbook'::text, 'step'::text, 'task'::text])))
  event_pkey PRIMARY KEY (execution_id, event_id)

table execution with autovacuum_vacuum_cost_delay=0, autovacuum_vacuum_scale_factor=0.01, fillfactor=70
  execution_id bigint not null
  catalog_id bigint not null
  path text collate "C" not null
  version integer not null
  status text not null
  progress smallint not null default 0
  last_event_id bigint not null
  parent_execution_id bigint
  parent_step text
  root_execution_id bigint not null
  result json
  error json
  started_at timestamp(3) with time zone not null default now()
  ended_at timestamp(3) with time zone
  updated_at timestamp(3) with time zone not null default now()
  caller text
  idempotency_key text
  body_sha256 text
  deadline_at timestamp(3) with time zone
  started_by bigint
  started_issuer text
  started_subject text
  rerun_of bigint
  rerun_request json
  sealed_under bigint
  refers_to bigint[]
  started_kind text
  started_id bigint
  started_name text
  execution_ended CHECK (((ended_at IS NOT NULL) = (status = ANY (ARRAY['COMPLETED'::text, 'FAILED'::text, 'CANCELLED'::text]))))
  execution_error CHECK (
CASE
    WHEN (error IS NULL) THEN (status <> 'FAILED'::text)
    ELSE (status = ANY (ARRAY['FAILED'::text, 'CANCELLED'::text]))
END)
  execution_idempotency CHECK ((num_nulls(caller, idempotency_key, body_sha256) = ANY (ARRAY[0, 3])))
  execution_last_event CHECK ((last_event_id >= execution_id))
  execution_parent CHECK (((parent_execution_id IS NULL) = (root_execution_id = execution_id)))
  execution_parent_step CHECK (((parent_step IS NULL) OR (parent_execution_id IS NOT NULL)))
  execution_progress CHECK (((progress >= 0) AND (progress <= 100)))
  execution_rerun CHECK (((rerun_of < execution_id) AND ((rerun_request IS NULL) OR (rerun_of IS NOT NULL))))
  execution_result CHECK (((result IS NULL) OR (ended_at IS NOT NULL)))
  execution_started CHECK (
CASE
    WHEN (started_kind IS NULL) THEN (num_nonnulls(started_id, started_name) = 0)
    ELSE (started_kind = ANY (ARRAY['user'::text, 'trigger'::text, 'execution'::text, 'rerun'::text, 'bulk'::text, 'mcp'::text]))
END)
  execution_status CHECK ((status = ANY (ARRAY['PENDING'::text, 'RUNNING'::text, 'PAUSED'::text, 'COMPLETED'::text, 'FAILED'::text, 'CANCELLED'::text])))
  execution_pkey PRIMARY KEY (execution_id)
  INDEX execution_for_children btree (parent_execution_id, execution_id) WHERE (parent_execution_id IS NOT NULL)
  INDEX execution_for_deadline btree (deadline_at) WHERE ((deadline_at IS NOT NULL) AND (ended_at IS NULL))
  INDEX execution_for_drafts btree (catalog_id) WHERE (version = 0)
  UNIQUE INDEX execution_for_idempotency btree (caller, idempotency_key) WHERE (idempotency_key IS NOT NULL)
  INDEX execution_for_list_by_error btree (flow.error_part(error, 'code'::text), execution_id) WHERE (error IS NOT NULL)
  INDEX execution_for_list_by_origin btree (started_kind, execution_id) WHERE (started_kind IS NOT NULL)
  INDEX execution_for_list_by_origin_id btree (started_id, execution_id) WHERE (started_id IS NOT NULL)
  INDEX execution_for_list_by_path btree (path, execution_id)
  INDEX execution_for_list_by_status btree (status, execution_id)
  INDEX execution_for_overlap btree (started_id) WHERE ((started_kind = 'trigger'::text) AND (ended_at IS NULL))
  INDEX execution_for_references gin (refers_to) WHERE (refers_to IS NOT NULL)
  INDEX execution_for_reruns btree (rerun_of, execution_id) WHERE (rerun_of IS NOT NULL)

table execution_label
  execution_id bigint not null
  name text collate "C" not null
  value text collate "C" not null
  execution_label_execution_id_name_pk PRIMARY KEY (execution_id, name)
  INDEX execution_label_for_list btree (name, value, execution_id)

table execution_snapshot with fillfactor=70
  execution_id bigint not null
  event_id bigint not null
  format smallint not null
  state text not null
  created_at timestamp(3) with time zone not null default now()
  execution_snapshot_event CHECK ((event_id > execution_id))
  execution_snapshot_format CHECK ((format >= 1))
  execution_snapshot_pkey PRIMARY KEY (execution_id)

table id_source
  singleton boolean not null default true
  last_id bigint not null
  id_source_range CHECK (((last_id >= 0) AND (last_id <= '9007199254740991'::bigint)))
  id_source_singleton CHECK (singleton)
  id_source_pkey PRIMARY KEY (singleton)

table keychain with fillfactor=80
  cache_key text not null
  keychain_name text not null
  catalog_id bigint not null
  credential_type text not null
  cache_type text not null
  scope_type text not null
  execution_id bigint
  parent_execution_id bigint
  data_encrypted text not null
  schema jsonb
  expires_at timestamp(3) with time zone not null
  created_at timestamp(3) with time zone not null default now()
  accessed_at timestamp(3) with time zone not null default now()
  access_count integer not null default 0
  auto_renew boolean not null default false
  renew_config jsonb
  keychain_access_count CHECK ((access_count >= 0))
  keychain_cache_type CHECK ((cache_type = ANY (ARRAY['secret'::text, 'token'::text])))
  keychain_owner CHECK (((scope_type = 'global'::text) OR (execution_id IS NOT NULL)))
  keychain_scope_type CHECK ((scope_type = ANY (ARRAY['local'::text, 'global'::text, 'shared'::text])))
  keychain_pkey PRIMARY KEY (cache_key)
  INDEX keychain_for_catalog btree (keychain_name, catalog_id)
  INDEX keychain_for_execution btree (execution_id)
  INDEX keychain_for_expiry btree (expires_at) WHERE (NOT auto_renew)
  INDEX keychain_for_list btree (catalog_id, cache_key)
  INDEX keychain_for_renewal btree (expires_at) WHERE auto_renew

table keychain_lease
  cache_key text not null
  holder text not null
  expires_at timestamp(3) with time zone not null
  message text
  keychain_lease_pkey PRIMARY KEY (cache_key)

table lease
  name text not null
  holder text not null
  token bigint not null
  acquired_at timestamp(3) with time zone not null default now()
  expires_at timestamp(3) with time zone not null
  lease_expires CHECK ((expires_at > acquired_at))
  lease_token CHECK ((token > 0))
  lease_pkey PRIMARY KEY (name)

table past_snapshot
  execution_id bigint not null
  event_id bigint not null
  number integer not null
  format smallint not null
  state text not null
  created_at timestamp(3) with time zone not null default now()
  past_snapshot_event CHECK ((event_id > execution_id))
  past_snapshot_format CHECK ((format >= 1))
  past_snapshot_number CHECK ((number >= 1))
  past_snapshot_pkey PRIMARY KEY (execution_id, event_id)

table resource with fillfactor=80
  path text collate "C" not null
  kind text not null
  version integer not null
  catalog_id bigint not null
  content_sha256 text not null
  created_at timestamp(3) with time zone not null default now()
  updated_at timestamp(3) with time zone not null default now()
  paused_at timestamp(3) with time zone
  paused_by text
  pause_reason text
  resource_kind CHECK ((kind = ANY (ARRAY['playbook'::text, 'agent'::text, 'mcp'::text, 'trigger'::text])))
  resource_path CHECK ((path <> ''::text))
  resource_version CHECK ((version >= 1))
  resource_pkey PRIMARY KEY (path)
  INDEX resource_for_list_by_kind btree (kind, path)

table result
  execution_id bigint not null
  ref text collate "C" not null
  root_execution_id bigint not null
  state text not null
  store text not null
  scope text not null
  expires_at timestamp(3) with time zone
  content_type text not null
  bytes bigint not null
  sha256 text not null
  compression text
  location jsonb
  extracted jsonb not null default '{}'::jsonb
  preview jsonb
  payload bytea storage e
  created_at timestamp(3) with time zone not null default now()
  writing text collate "C" not null default ''::text
  is_sealed boolean not null default false
  result_bytes CHECK ((bytes >= 0))
  result_payload CHECK (((payload IS NULL) OR (store = ANY (ARRAY['kv'::text, 'sqldb'::text]))))
  result_scope CHECK ((scope = ANY (ARRAY['step'::text, 'execution'::text, 'workflow'::text, 'permanent'::text])))
  result_sha256 CHECK ((sha256 ~ '^[0-9a-f]{64}$'::text))
  result_state CHECK ((state = ANY (ARRAY['pending'::text, 'stored'::text, 'deleting'::text])))
  result_store CHECK ((store = ANY (ARRAY['kv'::text, 's3'::text, 'cloud_bucket'::text, 'sqldb'::text, 'disk'::text])))
  result_writing CHECK (((state = 'stored'::text) = (writing = ''::text)))
  result_pkey PRIMARY KEY (execution_id, ref, writing)
  INDEX result_for_cleanup btree (created_at) WHERE (state <> 'stored'::text)
  INDEX result_for_expiry btree (expires_at) WHERE (expires_at IS NOT NULL)
  INDEX result_for_root btree (root_execution_id) WHERE (scope = 'workflow'::text)
  INDEX result_for_scope btree (scope, ((execution_id + 0))) WHERE (scope = ANY (ARRAY['step'::text, 'execution'::text]))

table result_part
  payload text collate "C" not null
  place bigint not null
  part bytea not null
  result_part_pkey PRIMARY KEY (payload, place)

table result_row
  payload text collate "C" not null
  item integer not null
  value jsonb not null
  result_row_pkey PRIMARY KEY (payload, item)

table runtime with fillfactor=50
  runtime_id bigint not null
  kind text not null
  name text not null
  status text not null
  capacity integer not null default 0
  running integer not null default 0
  labels jsonb not null default '{}'::jsonb
  capabilities text[] not null default '{}'::text[]
  about jsonb not null default '{}'::jsonb
  heartbeat_at timestamp(3) with time zone not null default now()
  created_at timestamp(3) with time zone not null default now()
  runtime_capacity CHECK (((capacity >= 0) AND (running >= 0)))
  runtime_kind CHECK ((kind = ANY (ARRAY['worker'::text, 'server'::text])))
  runtime_status CHECK ((status = ANY (ARRAY['ready'::text, 'draining'::text, 'offline'::text])))
  runtime_pkey PRIMARY KEY (runtime_id)
  runtime_kind_name UNIQUE (kind, name)

table signal
  signal_id bigint not null
  name text collate "C" not null
  key text collate "C" not null
  sender_id text collate "C"
  data json
  sent_by text not null
  user_id bigint
  state text not null default 'sending'::text
  reached integer not null default 0
  walked_to bigint
  taken_by bigint
  lease_expires_at timestamp(3) with time zone
  kept_until timestamp(3) with time zone not null
  created_at timestamp(3) with time zone not null default now()
  expires_at timestamp(3) with time zone not null
  signal_reached CHECK ((reached >= 0))
  signal_state CHECK ((state = ANY (ARRAY['sending'::text, 'kept'::text, 'done'::text])))
  signal_pkey PRIMARY KEY (signal_id)
  INDEX signal_for_retention btree (expires_at)
  UNIQUE INDEX signal_for_sender btree (name, key, sender_id) WHERE (sender_id IS NOT NULL)
  INDEX signal_for_wait btree (name, key, signal_id) WHERE (state <> 'done'::text)
  INDEX signal_for_work btree (signal_id) WHERE (state = 'sending'::text)

table statistic
  seconds integer not null
  path text collate "C" not null
  at timestamp(3) with time zone not null
  completed integer not null default 0
  failed integer not null default 0
  cancelled integer not null default 0
  took_buckets smallint[] not null default '{}'::smallint[]
  took_counts integer[] not null default '{}'::integer[]
  waited_buckets smallint[] not null default '{}'::smallint[]
  waited_counts integer[] not null default '{}'::integer[]
  statistic_seconds CHECK ((seconds = ANY (ARRAY[60, 3600, 86400])))
  statistic_pkey PRIMARY KEY (seconds, path, at)
  INDEX statistic_for_time btree (seconds, at)

table statistic_backlog
  execution_id bigint not null
  ended_before timestamp(3) with time zone not null
  statistic_backlog_pkey PRIMARY KEY (execution_id)

table step_statistic
  seconds integer not null
  path text collate "C" not null
  at timestamp(3) with time zone not null
  step text collate "C" not null
  runs integer not null default 0
  failed integer not null default 0
  took_buckets smallint[] not null default '{}'::smallint[]
  took_counts integer[] not null default '{}'::integer[]
  step_statistic_seconds CHECK ((seconds = ANY (ARRAY[3600, 86400])))
  step_statistic_pkey PRIMARY KEY (seconds, path, at, step)
  INDEX step_statistic_for_time btree (seconds, at)

table transient with fillfactor=80
  bucket text collate "C" not null
  key text collate "C" not null
  value bytea not null
  revision bigint not null default 1
  expires_at timestamp(3) with time zone
  created_at timestamp(3) with time zone not null default now()
  updated_at timestamp(3) with time zone not null default now()
  transient_revision CHECK ((revision > 0))
  transient_pkey PRIMARY KEY (bucket, key)
  INDEX transient_for_expiry btree (expires_at) WHERE (expires_at IS NOT NULL)

table trigger
  trigger_id bigint not null
  document text collate "C" not null
  path text collate "C" not null
  name text collate "C" not null
  kind text not null
  definition json not null
  version integer not null
  user_id bigint
  address text collate "C"
  enabled boolean not null default true
  active_since timestamp(3) with time zone not null default now()
  counted_from timestamp(3) with time zone not null default now()
  next_due_at timestamp(3) with time zone
  wake_at timestamp(3) with time zone
  taken_by text
  last_fire_at timestamp(3) with time zone
  decided_by text
  decided_until timestamp(3) with time zone
  created_at timestamp(3) with time zone not null default now()
  updated_at timestamp(3) with time zone not null default now()
  trigger_decided CHECK ((num_nulls(decided_by, decided_until) = ANY (ARRAY[0, 2])))
  trigger_due CHECK (((next_due_at IS NULL) OR (enabled AND (kind = 'schedule'::text))))
  trigger_kind CHECK ((kind = ANY (ARRAY['schedule'::text, 'webhook'::text, 'execution'::text, 'nats'::text, 'signal'::text])))
  trigger_pkey PRIMARY KEY (trigger_id)
  UNIQUE INDEX trigger_address btree (kind, address) WHERE (address IS NOT NULL)
  INDEX trigger_for_document btree (document)
  INDEX trigger_for_due btree (wake_at) WHERE (wake_at IS NOT NULL)
  INDEX trigger_for_kind btree (kind, trigger_id) WHERE (enabled AND (kind <> 'schedule'::text))
  UNIQUE INDEX trigger_path_name btree (path, name)

table trigger_delivery
  delivery_id bigint not null
  trigger_id bigint not null
  verdict text not null
  is_refused boolean not null
  reason text
  address text
  bytes integer
  execution_id bigint
  count integer not null default 1
  first_at timestamp(3) with time zone not null
  last_at timestamp(3) with time zone not null
  trigger_delivery_count CHECK ((count >= 1))
  trigger_delivery_verdict CHECK ((verdict = ANY (ARRAY['started'::text, 'queued'::text, 'repeated'::text, 'skipped'::text, 'answered'::text, 'not_verified'::text, 'too_large'::text, 'rate_limited'::text, 'unreadable'::text, 'failed'::text])))
  trigger_delivery_pkey PRIMARY KEY (delivery_id)
  INDEX trigger_delivery_for_list btree (trigger_id, is_refused, delivery_id)

table trigger_fire
  fire_id bigint not null
  trigger_id bigint not null
  key text collate "C" not null
  due_at timestamp(3) with time zone not null
  status text not null
  execution_id bigint
  reason text
  input json
  waits boolean not null default false
  always boolean not null default false
  cause_id bigint
  wake_at timestamp(3) with time zone
  fired_at timestamp(3) with time zone not null default now()
  trigger_fire_queued CHECK (((wake_at IS NOT NULL) = (status = 'queued'::text)))
  trigger_fire_reason CHECK (((reason IS NOT NULL) OR (status = ANY (ARRAY['started'::text, 'queued'::text]))))
  trigger_fire_started CHECK (((execution_id IS NOT NULL) = (status = 'started'::text)))
  trigger_fire_status CHECK ((status = ANY (ARRAY['started'::text, 'queued'::text, 'skipped'::text, 'missed'::text, 'failed'::text])))
  trigger_fire_pkey PRIMARY KEY (fire_id)
  INDEX trigger_fire_for_cause btree (cause_id, execution_id) WHERE (cause_id IS NOT NULL)
  INDEX trigger_fire_for_execution btree (execution_id) WHERE (execution_id IS NOT NULL)
  INDEX trigger_fire_for_list btree (trigger_id, fire_id)
  INDEX trigger_fire_for_queue btree (trigger_id, due_at, fire_id) WHERE (status = 'queued'::text)
  INDEX trigger_fire_for_work btree (wake_at, fire_id) WHERE (wake_at IS NOT NULL)
  UNIQUE INDEX trigger_fire_key btree (trigger_id, key)

table uncounted_execution
  execution_id bigint not null
  path text collate "C" not null
  status text not null
  ended_at timestamp(3) with time zone not null
  tally json not null
  uncounted_execution_pkey PRIMARY KEY (execution_id)

table wait
  command_id bigint not null
  execution_id bigint not null
  kind text not null
  due_at timestamp(3) with time zone
  taken_until timestamp(3) with time zone
  name text collate "C"
  key text collate "C"
  is_looked boolean not null default true
  wait_kind CHECK ((kind = ANY (ARRAY['timer'::text, 'signal'::text, 'approval'::text, 'retry'::text])))
  wait_signal CHECK ((num_nulls(name, key) = ANY (ARRAY[0, 2])))
  wait_pkey PRIMARY KEY (command_id)
  INDEX wait_for_due btree (due_at) WHERE (due_at IS NOT NULL)
  INDEX wait_for_look btree (command_id) WHERE (NOT is_looked)
  INDEX wait_for_signal btree (name, key, execution_id) WHERE (name IS NOT NULL)

table watched_end
  execution_id bigint not null
  wake_at timestamp(3) with time zone not null default now()
  watched_end_pkey PRIMARY KEY (execution_id)
  INDEX watched_end_for_work btree (wake_at)

table worker_pool
  name text collate "C" not null
  paths text[] not null
  labels jsonb not null default '{}'::jsonb
  token_sha256 text not null
  created_by text not null
  created_at timestamp(3) with time zone not null default now()
  rotated_at timestamp(3) with time zone
  revoked_at timestamp(3) with time zone
  worker_pool_paths CHECK ((cardinality(paths) > 0))
  worker_pool_token_sha256 CHECK ((token_sha256 ~ '^[0-9a-f]{64}$'::text))
  worker_pool_pkey PRIMARY KEY (name)
  worker_pool_token UNIQUE (token_sha256)

view event
 SELECT event_log.event_id,
    event_log.execution_id,
    event_log.catalog_id,
    event_log.event_type,
    event_log.node_id,
    event_log.node_name,
    event_log.node_type,
    event_log.status,
    event_log.created_at,
    event_log.parent_event_id,
    event_log.parent_execution_id,
    event_log.command_id,
    event_log.worker,
    event_log.attempt,
    event_log.iteration,
    event_log.page,
    event_log.step_run_id,
    event_log.task_run_id,
    event_log.duration_ms,
    event_log.result,
    event_log.error,
    event_log.meta
   FROM flow.event_log
  WHERE event_log.body IS NULL
UNION ALL
 SELECT e.event_id,
    l.execution_id,
    l.catalog_id,
    e.type AS event_type,
    COALESCE(e.step, l.node_id) AS node_id,
    COALESCE(e.task, e.step, l.node_id) AS node_name,
        CASE
            WHEN e.task IS NOT NULL THEN 'task'::text
            WHEN e.step IS NOT NULL THEN 'step'::text
            ELSE 'playbook'::text
        END AS node_type,
    flow.event_status(e.type, e.status) AS status,
    to_timestamp(floor(e.at) / 1000::double precision)::timestamp(3) with time zone AS created_at,
    e.parent_event_id,
    e.parent_execution_id,
    e.command_id,
    e.worker,
    e.attempt,
    e.iteration,
    e.page,
    e.step_run_id,
    e.task_run_id,
    e.duration_ms,
    flow.event_result(e.type, packed.event) AS result,
    e.error,
        CASE
            WHEN NOT flow.event_has_result(e.type) AND e.type !~~ 'batch.%'::text THEN flow.event_rest(packed.event)
            ELSE NULL::json
        END AS meta
   FROM flow.event_log l
     CROSS JOIN LATERAL json_array_elements(l.body::json) packed(event)
     CROSS JOIN LATERAL json_to_record(packed.event) e(event_id bigint, type text, step text, task text, status text, at double precision, parent_event_id bigint, parent_execution_id bigint, command_id bigint, worker text, attempt integer, iteration bigint, page bigint, step_run_id text, task_run_id text, duration_ms double precision, error json)
  WHERE l.body IS NOT NULL;
  TRIGGER event_delete INSTEAD OF DELETE ON flow.event FOR EACH ROW EXECUTE FUNCTION flow.event_delete()
  TRIGGER event_insert INSTEAD OF INSERT ON flow.event FOR EACH ROW EXECUTE FUNCTION flow.event_insert()

CREATE OR REPLACE FUNCTION flow.error_part(error json, part text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
	SELECT CASE WHEN "error"::text !~* '\\u(0000|d[89a-f])' THEN "error" ->> "part" END
$function$

CREATE OR REPLACE FUNCTION flow.event_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
	DELETE FROM flow.event_log WHERE execution_id = old.execution_id AND event_id = old.event_id;
	RETURN old;
END $function$

CREATE OR REPLACE FUNCTION flow.event_has_result(type text)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
	SELECT "type" IN ('task.done', 'command.completed', 'command.failed', 'loop.iteration.completed', 'loop.iteration.failed')
$function$

CREATE OR REPLACE FUNCTION flow.event_insert()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
	INSERT INTO flow.event_log (event_id, execution_id, catalog_id, event_type, node_id, node_name, node_type, status, created_at,
		parent_event_id, parent_execution_id, command_id, worker, attempt, iteration, page, step_run_id, task_run_id,
		duration_ms, result, error, meta)
	VALUES (new.event_id, new.execution_id, new.catalog_id, new.event_type, new.node_id, new.node_name, new.node_type, new.status,
		coalesce(new.created_at, now()), new.parent_event_id, new.parent_execution_id, new.command_id, new.worker, new.attempt,
		new.iteration, new.page, new.step_run_id, new.task_run_id, new.duration_ms, new.result, new.error, new.meta);
	RETURN new;
END $function$

CREATE OR REPLACE FUNCTION flow.event_rest(event json)
 RETURNS json
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
	SELECT json_object_agg(key, value) FROM json_each("event")
	WHERE key NOT IN ('event_id', 'parent_event_id', 'parent_execution_id', 'type', 'at', 'step', 'task', 'status', 'result', 'command_id',
		'worker', 'attempt', 'iteration', 'page', 'step_run_id', 'task_run_id', 'duration_ms', 'error')
$function$

CREATE OR REPLACE FUNCTION flow.event_result(type text, event json)
 RETURNS json
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
	SELECT CASE
		WHEN "type" LIKE 'batch.%' THEN json_build_object('status', 'ok', 'context', "event" -> 'context')
		WHEN NOT flow.event_has_result("type") AND "event" -> 'result' IS NULL THEN NULL
		ELSE (
			SELECT json_object_agg(key, value) FROM (
				SELECT 'status' AS key,
					coalesce("event" -> 'status', to_json(CASE WHEN "event" -> 'error' IS NULL THEN 'ok' ELSE 'error' END)) AS value
				UNION ALL SELECT 'reference', "event" -> 'result' -> 'ref'
				UNION ALL SELECT 'context', coalesce((
					SELECT json_object_agg(key, value) FROM (
						-- Who gave a result by hand, and why, is in its meta.
						SELECT key, value FROM json_each(flow.event_rest("event")) WHERE flow.event_has_result("type")
						UNION ALL SELECT 'task', "event" -> 'task'
						UNION ALL SELECT 'value', "event" -> 'result' -> 'value'
						UNION ALL SELECT 'virtual', "event" -> 'result' -> 'virtual'
						UNION ALL SELECT 'about', "event" -> 'result' -> 'about'
					) AS context WHERE value IS NOT NULL
				), '{}')
			) AS envelope WHERE value IS NOT NULL
		)
	END
$function$

CREATE OR REPLACE FUNCTION flow.event_status(type text, status text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
	SELECT CASE
		WHEN "type" = 'task.done' THEN CASE "status" WHEN 'ok' THEN 'COMPLETED' ELSE 'FAILED' END
		WHEN "type" LIKE '%.error' THEN 'FAILED'
		WHEN "type" LIKE '%.issued' THEN 'PENDING'
		WHEN "type" LIKE '%.initialized' OR "type" LIKE '%.started' OR "type" LIKE '%.progress' THEN 'RUNNING'
		WHEN "type" LIKE '%.done' OR "type" LIKE '%.stored' OR "type" LIKE '%.evaluated' THEN 'COMPLETED'
		ELSE upper(substring("type" from '[^.]*$'))
	END
$function$

table auth.audit_chain
  chain integer not null
  first_seq bigint not null default 1
  last_seq bigint not null default 0
  last_hash text not null default repeat('0'::text, 64)
  after_audit_id bigint not null
  audit_chain_range CHECK (((first_seq >= 1) AND (last_seq >= (first_seq - 1))))
  audit_chain_pkey PRIMARY KEY (chain)
  TRIGGER audit_chain_guard BEFORE INSERT OR DELETE ON auth.audit_chain FOR EACH ROW EXECUTE FUNCTION auth.audit_chain_guard()
  TRIGGER audit_chain_guard_update BEFORE UPDATE ON auth.audit_chain FOR EACH ROW WHEN ((pg_trigger_depth() = 0)) EXECUTE FUNCTION auth.audit_chain_guard()
  TRIGGER audit_chain_no_truncate BEFORE TRUNCATE ON auth.audit_chain FOR EACH STATEMENT EXECUTE FUNCTION auth.audit_chain_guard()

table auth.audit_log
  audit_id bigint not null identity always
  at timestamp(3) with time zone not null default now()
  actor_kind text not null
  actor text
  user_id bigint
  action text not null
  resource text not null
  rule text not null
  result text not null
  address text
  request_id bigint
  detail jsonb
  issuer text
  subject text
  execution_id bigint
  command_id bigint
  attempt integer
  chain integer
  chain_seq bigint
  previous_hash text
  hash text
  audit_log_actor_kind CHECK ((actor_kind = ANY (ARRAY['operator'::text, 'worker'::text, 'user'::text, 'anonymous'::text, 'system'::text])))
  audit_log_result CHECK ((result = ANY (ARRAY['allow'::text, 'deny'::text, 'error'::text])))
  audit_log_user CHECK (((user_id IS NULL) OR (actor_kind = 'user'::text)))
  audit_log_pkey PRIMARY KEY (audit_id)
  UNIQUE INDEX audit_log_chain btree (chain, chain_seq) WHERE (chain IS NOT NULL)
  INDEX audit_log_for_execution btree (execution_id, audit_id) WHERE (execution_id IS NOT NULL)
  INDEX audit_log_for_resource btree (resource, audit_id)
  INDEX audit_log_for_retention btree (at)
  TRIGGER audit_log_append_only BEFORE DELETE OR UPDATE ON auth.audit_log FOR EACH ROW EXECUTE FUNCTION auth.audit_log_append_only()
  TRIGGER audit_log_forget AFTER DELETE ON auth.audit_log REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION auth.audit_log_forget()
  TRIGGER audit_log_link BEFORE INSERT ON auth.audit_log FOR EACH ROW EXECUTE FUNCTION auth.audit_log_link()
  TRIGGER audit_log_linked AFTER INSERT ON auth.audit_log REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION auth.audit_log_linked()
  TRIGGER audit_log_no_truncate BEFORE TRUNCATE ON auth.audit_log FOR EACH STATEMENT EXECUTE FUNCTION auth.audit_log_append_only()

table auth.permissions
  permission_id bigint not null identity always
  name text not null
  description text not null
  permissions_pkey PRIMARY KEY (permission_id)
  permissions_name UNIQUE (name)

table auth.playbook_permissions
  playbook_permission_id bigint not null identity always
  role_id bigint not null
  playbook_path text
  allow_pattern text
  deny_pattern text
  can_execute boolean not null default false
  can_view boolean not null default false
  can_modify boolean not null default false
  created_at timestamp(3) with time zone not null default now()
  playbook_permissions_about CHECK (((playbook_path IS NOT NULL) OR (allow_pattern IS NOT NULL)))
  playbook_permissions_role_id_roles_role_id_fk FOREIGN KEY (role_id) REFERENCES auth.roles(role_id) ON DELETE CASCADE
  playbook_permissions_pkey PRIMARY KEY (playbook_permission_id)
  INDEX playbook_permissions_for_role btree (role_id)
  TRIGGER playbook_permissions_tell AFTER INSERT OR DELETE OR UPDATE ON auth.playbook_permissions FOR EACH STATEMENT EXECUTE FUNCTION auth.tell_all_sessions()

table auth.role_permissions
  role_id bigint not null
  permission_id bigint not null
  role_permissions_permission_id_permissions_permission_id_fk FOREIGN KEY (permission_id) REFERENCES auth.permissions(permission_id) ON DELETE CASCADE
  role_permissions_role_id_roles_role_id_fk FOREIGN KEY (role_id) REFERENCES auth.roles(role_id) ON DELETE CASCADE
  role_permissions_pkey PRIMARY KEY (role_id, permission_id)
  TRIGGER role_permissions_tell AFTER INSERT OR DELETE OR UPDATE ON auth.role_permissions FOR EACH STATEMENT EXECUTE FUNCTION auth.tell_all_sessions()

table auth.roles
  role_id bigint not null identity always
  name text not null
  description text
  is_active boolean not null default true
  created_at timestamp(3) with time zone not null default now()
  roles_name_form CHECK ((name ~ '^[a-z][a-z0-9_-]{0,63}$'::text))
  roles_pkey PRIMARY KEY (role_id)
  roles_name UNIQUE (name)
  TRIGGER roles_tell AFTER DELETE OR UPDATE ON auth.roles FOR EACH STATEMENT EXECUTE FUNCTION auth.tell_all_sessions()

table auth.sessions
  session_id bigint not null identity always
  token_sha256 text not null
  user_id bigint not null
  created_at timestamp(3) with time zone not null default now()
  last_seen_at timestamp(3) with time zone not null default now()
  idle_expires_at timestamp(3) with time zone not null
  expires_at timestamp(3) with time zone not null
  revoked_at timestamp(3) with time zone
  address text
  user_agent text
  sessions_token_sha256 CHECK ((token_sha256 ~ '^[0-9a-f]{64}$'::text))
  sessions_user_id_users_user_id_fk FOREIGN KEY (user_id) REFERENCES auth.users(user_id) ON DELETE CASCADE
  sessions_pkey PRIMARY KEY (session_id)
  INDEX sessions_for_expiry btree (expires_at)
  INDEX sessions_for_user btree (user_id)
  UNIQUE INDEX sessions_token btree (token_sha256)
  TRIGGER sessions_tell_delete AFTER DELETE ON auth.sessions FOR EACH ROW WHEN ((old.revoked_at IS NULL)) EXECUTE FUNCTION auth.tell_session()
  TRIGGER sessions_tell_update AFTER UPDATE ON auth.sessions FOR EACH ROW WHEN (((old.revoked_at IS DISTINCT FROM new.revoked_at) OR (old.expires_at > new.expires_at) OR (old.idle_expires_at > new.idle_expires_at) OR (old.user_id <> new.user_id) OR (old.token_sha256 <> new.token_sha256))) EXECUTE FUNCTION auth.tell_session()

table auth.user_roles
  user_id bigint not null
  role_id bigint not null
  granted_by bigint
  granted_at timestamp(3) with time zone not null default now()
  is_active boolean not null default true
  user_roles_granted_by FOREIGN KEY (granted_by) REFERENCES auth.users(user_id) ON DELETE SET NULL
  user_roles_role_id_roles_role_id_fk FOREIGN KEY (role_id) REFERENCES auth.roles(role_id) ON DELETE CASCADE
  user_roles_user_id_users_user_id_fk FOREIGN KEY (user_id) REFERENCES auth.users(user_id) ON DELETE CASCADE
  user_roles_pkey PRIMARY KEY (user_id, role_id)
  INDEX user_roles_for_role btree (role_id)
  TRIGGER user_roles_tell AFTER INSERT OR DELETE OR UPDATE ON auth.user_roles FOR EACH ROW EXECUTE FUNCTION auth.tell_sessions_of_user()

table auth.users
  user_id bigint not null identity always
  email text not null
  display_name text not null
  issuer text
  subject text
  is_active boolean not null default true
  created_at timestamp(3) with time zone not null default now()
  updated_at timestamp(3) with time zone not null default now()
  last_login_at timestamp(3) with time zone
  users_email_given CHECK ((email ~~ '_%@_%'::text))
  users_subject_whole CHECK (((issuer IS NOT NULL) OR (subject IS NULL)))
  users_pkey PRIMARY KEY (user_id)
  UNIQUE INDEX users_email btree (lower(email))
  UNIQUE INDEX users_subject btree (issuer, subject)
  TRIGGER users_tell AFTER UPDATE ON auth.users FOR EACH ROW WHEN (((old.is_active IS DISTINCT FROM new.is_active) OR (old.email <> new.email) OR (old.display_name <> new.display_name))) EXECUTE FUNCTION auth.tell_sessions_of_user()

CREATE OR REPLACE FUNCTION auth.audit_chain_guard()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
	RAISE EXCEPTION 'auth.audit_chain belongs to the audit log: % refused', TG_OP USING ERRCODE = 'insufficient_privilege';
END
$function$

CREATE OR REPLACE FUNCTION auth.audit_delete_old(days integer, most integer DEFAULT 5000)
 RETURNS integer
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
	bound timestamptz := now() - greatest(days, 1) * interval '1 day';
	gone integer;
BEGIN
	-- The trigger lets rows go for a transaction that says so.
	PERFORM set_config('flow.audit_retention', 'on', true);
	DELETE FROM "auth"."audit_log" WHERE audit_id IN (
		SELECT audit_id FROM (
			(SELECT audit_id, NULL::integer AS chain, NULL::bigint AS chain_seq FROM "auth"."audit_log"
				WHERE chain IS NULL AND at < bound ORDER BY at LIMIT most)
			UNION ALL
			SELECT oldest.audit_id, oldest.chain, oldest.chain_seq FROM "auth"."audit_chain" head
				JOIN "auth"."audit_log" begins ON begins.chain = head.chain AND begins.chain_seq = head.first_seq AND begins.at < bound
				CROSS JOIN LATERAL (
					SELECT audit_id, chain, chain_seq, bool_and(at < bound) OVER (ORDER BY chain_seq) AS is_old
					FROM (SELECT * FROM "auth"."audit_log" l WHERE l.chain = head.chain ORDER BY chain_seq LIMIT most) next
				) oldest
				WHERE oldest.is_old
		) old
		ORDER BY chain NULLS FIRST, chain_seq LIMIT most
	);
	GET DIAGNOSTICS gone = ROW_COUNT;
	PERFORM set_config('flow.audit_retention', 'off', true);
	RETURN gone;
END
$function$

CREATE OR REPLACE FUNCTION auth.audit_hash(entry auth.audit_log)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$
	SELECT encode(sha256(convert_to(format('%L,%L,%L,%L,%L,%L,%L,%L,%L,%L,%L,%L,%L,%L,%L,%L,%L,%L,%L,%L',
		entry.chain, entry.chain_seq, entry.previous_hash, entry.audit_id, (extract(epoch FROM entry.at) * 1000)::bigint,
		entry.actor_kind, entry.actor, entry.user_id, entry.issuer, entry.subject, entry.action, entry.resource, entry.rule,
		entry.result, entry.address, entry.request_id, entry.execution_id, entry.command_id, entry.attempt, entry.detail),
		'UTF8')), 'hex')
$function$

CREATE OR REPLACE FUNCTION auth.audit_log_append_only()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
	IF TG_OP = 'DELETE' AND current_setting('flow.audit_retention', true) = 'on' AND OLD.at < now() - interval '1 day' THEN
		RETURN OLD;
	END IF;
	RAISE EXCEPTION 'auth.audit_log is append-only: % refused', TG_OP USING ERRCODE = 'insufficient_privilege';
END
$function$

CREATE OR REPLACE FUNCTION auth.audit_log_forget()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
	part record;
BEGIN
	FOR part IN
		SELECT chain, min(chain_seq) AS low, max(chain_seq) AS high, count(*) AS rows FROM removed WHERE chain IS NOT NULL GROUP BY chain
	LOOP
		UPDATE "auth"."audit_chain" SET first_seq = part.high + 1
			WHERE chain = part.chain AND first_seq = part.low AND part.rows = part.high - part.low + 1;
		IF NOT FOUND THEN
			RAISE EXCEPTION 'auth.audit_log is append-only: only the oldest rows of chain % may be deleted', part.chain
				USING ERRCODE = 'insufficient_privilege';
		END IF;
	END LOOP;
	RETURN NULL;
END
$function$

CREATE OR REPLACE FUNCTION auth.audit_log_link()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
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
$function$

CREATE OR REPLACE FUNCTION auth.audit_log_linked()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
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
$function$

CREATE OR REPLACE FUNCTION auth.path_matches(pattern text, path text)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
AS $function$
	SELECT path ~ "auth"."pattern_regex"(pattern)
$function$

CREATE OR REPLACE FUNCTION auth.pattern_regex(pattern text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
AS $function$
	SELECT '^(?:' || replace(replace(replace(
		regexp_replace(
			regexp_replace(pattern, '[][^$.+?(){}|\\]', '\\\&', 'g'),
			'[*%]{2,}|%', E'\x01', 'g'
		),
		'*', '[^/]*'), E'\x01', '.*'), E'\n', '|') || ')$'
$function$

CREATE OR REPLACE FUNCTION auth.tell_all_sessions()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
	PERFORM pg_notify('flow_sessions', 'all');
	RETURN NULL;
END
$function$

CREATE OR REPLACE FUNCTION auth.tell_session()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
	PERFORM pg_notify('flow_sessions', OLD.token_sha256);
	RETURN NULL;
END
$function$

CREATE OR REPLACE FUNCTION auth.tell_sessions_of_user()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
DECLARE
	changed bigint := CASE WHEN TG_OP = 'DELETE' THEN OLD.user_id ELSE NEW.user_id END;
BEGIN
	PERFORM pg_notify('flow_sessions', token_sha256) FROM "auth"."sessions"
		WHERE user_id = changed AND revoked_at IS NULL AND expires_at > now();
	RETURN NULL;
END
$function$
