-- compatible: no
-- Follow-ups are called so in their ids, too: fup-… instead of task-…, which is an A2A task.
-- Older programs would make ids of the old kind and not find the new ones.
UPDATE followups SET id = 'fup-' || substr(id, 6) WHERE id LIKE 'task-%';
UPDATE proposals SET followup_id = 'fup-' || substr(followup_id, 6) WHERE followup_id LIKE 'task-%';
UPDATE tasks SET followup_id = 'fup-' || substr(followup_id, 6) WHERE followup_id LIKE 'task-%';
-- Repeated requests get the response of the first one, with the id that works now.
UPDATE idempotency SET outcome = replace(outcome, '"FollowupID":"task-', '"FollowupID":"fup-')
  WHERE outcome LIKE '%"FollowupID":"task-%';
