-- compatible: no
-- Workers can report auth-required. Older programs take an unknown state for a final one: they
-- would give up the pushes of such a task and refuse the sender's answer.
-- Like tasks_asking, this index counts a sender's live tasks.
CREATE INDEX tasks_asking_auth ON tasks (sender_org, sender) WHERE state = 'auth-required';
