package store

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// oldProposals are proposals, votes and friction as in schema 0016.
var oldProposals = []string{
	`INSERT INTO proposals (org_id, id, status, category, priority, submitted_by, submitted_at, submitted_as, updated_at,
		votes_for, votes_against, score, version, followup_id, title, problem, suggested_fix, resolution_note) VALUES
		('acme', 'prop-00000000000000000000000001', 'open', 'security', 1, 'user:ann', 1, 'open', 1,
			2, 2, 0, 5, '', 'a', 'b', 'c', ''),
		('acme', 'prop-00000000000000000000000002', 'open', 'security', 1, 'agent:bot', 1, 'open', 1,
			1, 0, 1, 2, '', 'a', 'b', 'c', ''),
		('acme', 'prop-00000000000000000000000003', 'rejected', 'process', 2, 'user:ann', 1, 'open', 1,
			0, 0, 0, 2, '', 'a', 'b', 'c', 'no'),
		('globex', 'prop-00000000000000000000000004', 'open', 'process', 2, 'agent:bot', 1, 'open', 1,
			0, 0, 0, 1, '', 'a', 'b', 'c', '')`,
	`INSERT INTO votes (org_id, proposal_id, voter, choice, comment, voted_at) VALUES
		('acme', 'prop-00000000000000000000000001', 'user:ann', 'for', '', 1),
		('acme', 'prop-00000000000000000000000001', 'agent:a', 'for', '', 1),
		('acme', 'prop-00000000000000000000000001', 'agent:b', 'against', '', 1),
		('acme', 'prop-00000000000000000000000001', 'agent:c', 'against', '', 1),
		('acme', 'prop-00000000000000000000000002', 'user:ann', 'for', '', 1)`,
	`INSERT INTO friction (org_id, fingerprint, title, category, problem, suggested_fix, priority, reports, proposal_id,
		first_at, last_at, last_by) VALUES
		('acme', 'slow', 'a', 'process', 'b', '', 'high', 7, 'prop-00000000000000000000000003', 1, 1, 'user:ann'),
		('acme', 'new', 'a', 'process', 'b', '', 'high', 1, '', 1, 1, 'user:ann'),
		('globex', 'slow', 'a', 'process', 'b', '', 'high', 4, 'prop-00000000000000000000000004', 1, 1, 'agent:bot')`,
	`INSERT INTO counters (org_id, kind, who, status, category, priority, slot, n) VALUES
		('acme', 'proposal', '', 'open', 'security', 1, 0, 2), ('acme', 'proposal', '', 'rejected', 'process', 2, 3, 1),
		('acme', 'proposal', 'user:ann', 'open', 'security', 1, 0, 1),
		('acme', 'proposal', 'user:ann', 'rejected', 'process', 2, 3, 1),
		('acme', 'proposal', 'agent:bot', 'open', 'security', 1, 1, 1),
		('globex', 'proposal', '', 'open', 'process', 2, 0, 1),
		('globex', 'proposal', 'agent:bot', 'open', 'process', 2, 0, 1)`,
}

func TestProposalsOfOlderStoresAreCompleted(t *testing.T) {
	t.Parallel()
	eachOlderStore(t, 16, oldProposals, func(t *testing.T, s *Store) {
		type row struct {
			AgentsFor, AgentsAgainst int
			Fingerprint              string
			Evidence, TextVersion    int64
		}
		for id, want := range map[string]row{
			propID(1): {AgentsFor: 1, AgentsAgainst: 2, TextVersion: 1},
			propID(2): {TextVersion: 1},
			propID(3): {Fingerprint: "slow", Evidence: 7, TextVersion: 1},
		} {
			cur, err := s.Proposals().Get(t.Context(), "acme", id, annOf("acme"))
			if err != nil {
				t.Fatal(err)
			}
			p := cur.Proposal
			if diff := cmp.Diff(want, row{p.AgentsFor, p.AgentsAgainst, p.Fingerprint, p.Evidence, p.TextVersion}); diff != "" {
				t.Errorf("%s: diff of the row (-want +got):\n%s", id, diff)
			}
		}
		for _, c := range []struct {
			f    proposal.Filter
			want map[proposal.Status]int64
		}{
			{proposal.Filter{}, map[proposal.Status]int64{proposal.Open: 2, proposal.Rejected: 1}},
			{proposal.Filter{Kind: identity.User}, map[proposal.Status]int64{proposal.Open: 1, proposal.Rejected: 1}},
			{proposal.Filter{Kind: identity.Agent}, map[proposal.Status]int64{proposal.Open: 1, proposal.Rejected: 0}},
			{proposal.Filter{Evidence: proposal.WithEvidence}, map[proposal.Status]int64{proposal.Rejected: 1}},
			{
				proposal.Filter{Evidence: proposal.WithoutEvidence},
				map[proposal.Status]int64{proposal.Open: 2, proposal.Rejected: 0},
			},
			{
				proposal.Filter{Evidence: proposal.WithEvidence, SubmittedBy: "user:ann"},
				map[proposal.Status]int64{proposal.Rejected: 1},
			},
			{
				proposal.Filter{Evidence: proposal.WithEvidence, Kind: identity.User},
				map[proposal.Status]int64{proposal.Rejected: 1},
			},
		} {
			c.f.Org, c.f.Viewer, c.f.Limit = "acme", proposal.Viewer{Principal: annOf("acme"), Admin: true}, 10
			got, err := s.Proposals().Counts(t.Context(), c.f)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%+v: diff of the counts (-want +got):\n%s", c.f, diff)
			}
			c.f.Sort = proposal.SortNewest
			items, total, err := s.Proposals().List(t.Context(), c.f)
			if err != nil || int64(len(items)) != total || total != c.want[proposal.Open]+c.want[proposal.Rejected] {
				t.Errorf("%+v: %d of %d rows, %v, want %d",
					c.f, len(items), total, err, c.want[proposal.Open]+c.want[proposal.Rejected])
			}
		}
	})
}
