package store

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// oldFollowups are follow-ups, a task and kept outcomes as in schema 0019.
var oldFollowups = []string{
	`INSERT INTO followups (org_id, id, status, assignee, proposal_id, text_hash, title, description, created_by,
		created_at, updated_at, version, task_uid, task_state) VALUES
		('acme', 'task-00000000000000000000000001', 'open', 'agent:bot', 'prop-1', '', 'a', '', 'user:ann',
			1, 1, 2, 'u1', 'submitted')`,
	`INSERT INTO proposals (org_id, id, status, category, priority, submitted_by, submitted_at, submitted_as, updated_at,
		votes_for, votes_against, score, version, followup_id, title, problem, suggested_fix, resolution_note) VALUES
		('acme', 'prop-1', 'approved', 'security', 1, 'user:ann', 1, 'open', 1,
			0, 0, 0, 2, 'task-00000000000000000000000001', 'a', 'b', 'c', ''),
		('acme', 'prop-2', 'open', 'security', 1, 'user:ann', 1, 'open', 1, 0, 0, 0, 1, '', 'task-x', 'b', 'c', '')`,
	`INSERT INTO tasks (org_id, uid, agent_id, sender_org, sender, id, context_id, followup_id, state, queued, seq, size,
		lease, lease_worker, lease_expires, attempts, delivered, last_turn, created_at, updated_at) VALUES
		('acme', 'u1', 'bot', 'acme', 'user:ann', 't1', 'c', 'task-00000000000000000000000001', 'submitted', 1, 1, 1,
			'', '', 0, 0, 0, '', 1, 1),
		('acme', 'u2', 'bot', 'acme', 'user:ann', 't2', 'c', '', 'submitted', 1, 1, 1, '', '', 0, 0, 0, '', 1, 1)`,
	`INSERT INTO task_events (org_id, uid, seq, at, data) VALUES
		('acme', 'u1', 1, 1, '[{"Data":{"followup_id":"task-1","title":"\"followup_id\":\"task-2"}}]'),
		('acme', 'u2', 1, 1, '[{"Data":{"followup_id":"task-1"}}]')`,
	`INSERT INTO idempotency (org_id, principal, operation, key, fingerprint, outcome, expires_at) VALUES
		('acme', 'user:ann', 'POST /api/v1/orgs/acme/tasks', '1', '',
			'{"Followup":{"ID":"task-1","Title":"\"ID\":\"task-"}}', 9),
		('acme', 'user:ann', 'PATCH /api/v1/orgs/acme/tasks/task-1', '2', '', '{"Followup":{"ID":"task-1"}}', 9),
		('acme', 'user:ann', 'PATCH /api/v1/orgs/acme/proposals/prop-1', '3', '',
			'{"Proposal":{"ID":"prop-1","FollowupID":"task-1"}}', 9),
		('acme', 'user:ann', 'POST /api/v1/orgs/acme/a2a/tasks/u1/push/p/retry', '4', '', '{"ID":"task-1"}', 9)`,
}

func TestFollowupsOfOlderStoresAreRenamed(t *testing.T) {
	t.Parallel()
	eachOlderStore(t, 19, oldFollowups, func(t *testing.T, s *Store) {
		for sql, want := range map[string][]string{
			`SELECT id FROM followups`:                      {"fup-00000000000000000000000001"},
			`SELECT followup_id FROM proposals ORDER BY id`: {"fup-00000000000000000000000001", ""},
			`SELECT title FROM proposals ORDER BY id`:       {"a", "task-x"},
			`SELECT followup_id FROM tasks ORDER BY uid`:    {"fup-00000000000000000000000001", ""},
			`SELECT data FROM task_events ORDER BY uid`: {
				`[{"Data":{"followup_id":"fup-1","title":"\"followup_id\":\"task-2"}}]`, `[{"Data":{"followup_id":"task-1"}}]`,
			},
			`SELECT operation FROM idempotency ORDER BY key`: {
				"POST /api/v1/orgs/acme/followups", "PATCH /api/v1/orgs/acme/followups/fup-1",
				"PATCH /api/v1/orgs/acme/proposals/prop-1", "POST /api/v1/orgs/acme/a2a/tasks/u1/push/p/retry",
			},
			`SELECT outcome FROM idempotency ORDER BY key`: {
				`{"Followup":{"ID":"fup-1","Title":"\"ID\":\"task-"}}`, `{"Followup":{"ID":"fup-1"}}`,
				`{"Proposal":{"ID":"prop-1","FollowupID":"fup-1"}}`, `{"ID":"task-1"}`,
			},
		} {
			got, err := strs(t.Context(), s.eng, sql)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", sql, diff)
			}
		}
	})
}
