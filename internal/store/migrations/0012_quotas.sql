-- compatible: no
-- Quotas: counts per org and per principal, and pushes by the sender's org.

-- Counts the waiting messages of an agent by sender and by the sender's org.
CREATE INDEX messages_sender ON messages (org_id, agent_id, sender_org, sender);

-- Live tasks are those in tasks_queue, in tasks_leases, and these.
CREATE INDEX tasks_asking ON tasks (sender_org, sender) WHERE state = 'input-required';

-- The sender chooses the receivers of pushes, so slots and quotas apply to it and its org.
ALTER TABLE push_configs ADD COLUMN sender_org TEXT NOT NULL DEFAULT '';
ALTER TABLE push_configs ADD COLUMN sender TEXT NOT NULL DEFAULT '';
UPDATE push_configs SET
  sender_org = coalesce((SELECT t.sender_org FROM tasks t WHERE t.org_id = push_configs.org_id AND t.uid = push_configs.uid), ''),
  sender = coalesce((SELECT t.sender FROM tasks t WHERE t.org_id = push_configs.org_id AND t.uid = push_configs.uid), '');
-- By org, so that the due rows of one org never hide those of another.
DROP INDEX push_due;
CREATE INDEX push_due ON push_configs (sender_org, due_at, receiver, org_id, uid, id) WHERE due_at > 0;
CREATE INDEX push_active ON push_configs (sender_org, sender) WHERE state = 'active';

-- The first page of the platform's card.
CREATE INDEX agents_public ON agents (id) WHERE public = 1 AND disabled = 0;

-- Valid keys and pending invitations only.
CREATE INDEX keys_live ON keys (org_id, expires_at) WHERE revoked_at = 0;
CREATE INDEX keys_live_principal ON keys (org_id, kind, principal_id, expires_at) WHERE revoked_at = 0;
CREATE INDEX invitations_pending ON invitations (org_id, expires_at) WHERE accepted_at = 0 AND revoked_at = 0;
