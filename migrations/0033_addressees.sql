-- Messages about approvals that have an addressee, with a link of their own. A column without a default: nothing is rewritten. Servers of the
-- version before write none, and would take such a link for one without an addressee: upgrade all of them before a playbook has `notify.to`.
ALTER TABLE "flow"."approval_message" ADD COLUMN "addressee" text;
