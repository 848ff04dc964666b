-- compatible: yes
-- Workers can report auth-required. Like tasks_asking, this index counts a sender's live tasks.
CREATE INDEX tasks_asking_auth ON tasks (sender_org, sender) WHERE state = 'auth-required';
