-- compatible: no
-- Ids of follow-ups start with fup- instead of task-, which suggests an A2A task. Older
-- programs would create ids of the old kind and not find the new ones.
UPDATE followups SET id = 'fup-' || substr(id, 6) WHERE id LIKE 'task-%';
UPDATE proposals SET followup_id = 'fup-' || substr(followup_id, 6) WHERE followup_id LIKE 'task-%';
UPDATE tasks SET followup_id = 'fup-' || substr(followup_id, 6) WHERE followup_id LIKE 'task-%';
-- Messages to agents contain the id, too. Quotes inside of a text are escaped, so that no text
-- is changed.
UPDATE task_events SET data = replace(data, '"followup_id":"task-', '"followup_id":"fup-')
  WHERE data LIKE '%"followup_id":"task-%'
    AND EXISTS (SELECT 1 FROM tasks t WHERE t.org_id = task_events.org_id AND t.uid = task_events.uid AND t.followup_id <> '');
-- Replayed requests get the first response, with the new id and path.
UPDATE idempotency SET outcome = replace(outcome, '"FollowupID":"task-', '"FollowupID":"fup-')
  WHERE outcome LIKE '%"FollowupID":"task-%';
UPDATE idempotency SET outcome = replace(outcome, '"ID":"task-', '"ID":"fup-'),
    operation = replace(replace(operation, '/tasks/task-', '/followups/fup-'), '/tasks', '/followups')
  WHERE operation LIKE '% /api/v1/orgs/%/tasks%' AND operation NOT LIKE '%/a2a/%';
