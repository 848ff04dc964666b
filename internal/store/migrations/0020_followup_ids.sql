-- compatible: no
-- Follow-ups are called so in their ids, too: fup-… instead of task-…, which is an A2A task.
-- Older programs would make ids of the old kind and not find the new ones.
UPDATE followups SET id = 'fup-' || substr(id, 6) WHERE id LIKE 'task-%';
UPDATE proposals SET followup_id = 'fup-' || substr(followup_id, 6) WHERE followup_id LIKE 'task-%';
UPDATE tasks SET followup_id = 'fup-' || substr(followup_id, 6) WHERE followup_id LIKE 'task-%';
-- What agents were sent names the follow-up, too. Quotes inside of a text are escaped, so that
-- no text is changed.
UPDATE task_events SET data = replace(data, '"followup_id":"task-', '"followup_id":"fup-')
  WHERE data LIKE '%"followup_id":"task-%'
    AND EXISTS (SELECT 1 FROM tasks t WHERE t.org_id = task_events.org_id AND t.uid = task_events.uid AND t.followup_id <> '');
-- Repeated requests get the response of the first one, with the id and the path that work now.
UPDATE idempotency SET outcome = replace(outcome, '"FollowupID":"task-', '"FollowupID":"fup-')
  WHERE outcome LIKE '%"FollowupID":"task-%';
UPDATE idempotency SET outcome = replace(outcome, '"ID":"task-', '"ID":"fup-'),
    operation = replace(replace(operation, '/tasks/task-', '/followups/fup-'), '/tasks', '/followups')
  WHERE operation LIKE '% /api/v1/orgs/%/tasks%' AND operation NOT LIKE '%/a2a/%';
