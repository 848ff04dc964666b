-- compatible: no
-- Workers can report auth-required. Older programs treat an unknown state as terminal: they
-- would give up the pushes of such a task and refuse the sender's next message.

-- Live tasks are those in tasks_queue, in tasks_leases, and these.
DROP INDEX tasks_asking;
CREATE INDEX tasks_asking ON tasks (sender_org, sender) WHERE state IN ('input-required', 'auth-required');
