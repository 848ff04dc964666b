-- compatible: no
-- Workers can report auth-required. Older programs take an unknown state for a final one: they
-- would give up the pushes of such a task and refuse the sender's answer.

-- Live tasks are those in tasks_queue, in tasks_leases, and these.
DROP INDEX tasks_asking;
CREATE INDEX tasks_asking ON tasks (sender_org, sender) WHERE state IN ('input-required', 'auth-required');
