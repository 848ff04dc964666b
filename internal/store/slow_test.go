package store

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/task"
)

// watched is an engine that records whether it was used for slow reads.
type watched struct {
	engine
	slowly bool
}

func (w *watched) stale() reader { return w.slow() }

func (w *watched) slow() reader {
	w.slowly = true
	return w.engine.slow()
}

// TestWhichReadsAreSlow has an org and a sender with more than manyRows rows, and others with few.
func TestWhichReadsAreSlow(t *testing.T) {
	t.Parallel()
	eachEngine(t, Options{}, func(t *testing.T, s *Store) {
		const n = manyRows + 100
		addProposals(t, s, "large", n)
		addAgentProposal(t, s, "large", n+1)
		addTasks(t, s, "large", n)
		addTasks(t, s, "b", 1)
		w := &watched{engine: s.eng}
		s.eng = w
		defer func() { s.eng = w.engine }()
		list := func(org string, edit func(*proposal.Filter)) func(context.Context) (int, error) {
			f := proposal.Filter{
				Org: org, Viewer: proposal.Viewer{Principal: annOf(org)}, Sort: proposal.SortNewest, Limit: 20,
			}
			edit(&f)
			return func(ctx context.Context) (int, error) {
				if len(f.Words) > 0 {
					found, err := s.Proposals().Search(ctx, f)
					return min(len(found.Items), 20), err
				}
				items, _, err := s.Proposals().List(ctx, f)
				return min(len(items), 20), err
			}
		}
		own := func(org string) func(context.Context) (int, error) {
			return func(ctx context.Context) (int, error) {
				rows, err := s.Tasks().Own(ctx, dispatch.OwnFilter{
					Key: task.Key{Org: org, Agent: "bot-" + org, Sender: annOf(org)}, Limit: 20,
				})
				return int(rows.Total), err
			}
		}
		tasks := func(f dispatch.Filter) func(context.Context) (int, error) {
			f.Limit = 20
			return func(ctx context.Context) (int, error) {
				list, err := s.Tasks().List(ctx, f)
				return len(list), err
			}
		}
		for _, c := range []struct {
			name string
			read func(context.Context) (int, error)
			slow bool
			want int
		}{
			{"first page", list("large", func(*proposal.Filter) {}), false, 20},
			{"page within bounds", list("large", func(f *proposal.Filter) { f.Offset = manyRows }), false, 20},
			{"deep page", list("large", func(f *proposal.Filter) { f.Offset = manyRows + 10 }), true, 20},
			{"page beyond the end", list("large", func(f *proposal.Filter) { f.Offset = 1 << 40 }), false, 0},
			{"votes", list("large", func(f *proposal.Filter) { f.Sort = proposal.SortVotes }), false, 20},
			{"votes, many of a category", list("large", func(f *proposal.Filter) {
				f.Sort, f.Category = proposal.SortVotes, proposal.Reliability
			}), false, 20},
			{"votes, many of a priority", list("large", func(f *proposal.Filter) {
				f.Sort, f.Priority = proposal.SortVotes, proposal.Normal
			}), true, 20},
			{"votes, few of a category", list("large", func(f *proposal.Filter) {
				f.Sort, f.Category = proposal.SortVotes, proposal.Security
			}), false, 0},
			{"of people", list("large", func(f *proposal.Filter) { f.Kind = identity.User }), false, 20},
			{"of agents, behind many of people", list("large", func(f *proposal.Filter) { f.Kind = identity.Agent }), false, 1},
			{"of agents", list("b", func(f *proposal.Filter) { f.Kind = identity.Agent }), false, 0},
			{"votes of many people", list("large", func(f *proposal.Filter) {
				f.Sort, f.Kind = proposal.SortVotes, identity.User
			}), false, 20},
			{"with evidence", list("large", func(f *proposal.Filter) { f.Evidence = proposal.WithEvidence }), false, 1},
			{"votes with evidence", list("large", func(f *proposal.Filter) {
				f.Sort, f.Evidence = proposal.SortVotes, proposal.WithEvidence
			}), false, 1},
			{"without evidence", list("large", func(f *proposal.Filter) { f.Evidence = proposal.WithoutEvidence }), false, 20},
			{"of a fingerprint", list("large", func(f *proposal.Filter) { f.Fingerprint = "f" }), false, 0},
			{"counts", func(ctx context.Context) (int, error) {
				n, err := s.Proposals().Counts(ctx, proposal.Filter{
					Org: "large", Viewer: proposal.Viewer{Principal: annOf("large")},
				})
				return int(n[proposal.Open]), err
			}, false, n + 1},
			{"search", list("b", func(f *proposal.Filter) { f.Words = []string{"upload"} }), true, 1},
			{"tasks of a sender with many", own("large"), true, n},
			{"tasks of a sender with few", own("b"), false, 1},
			{"tasks of a large org", tasks(dispatch.Filter{Org: "large"}), false, 20},
			{"tasks of a large org, filtered", tasks(dispatch.Filter{Org: "large", ContextID: "none"}), true, 0},
			{"live tasks of a sender", func(ctx context.Context) (int, error) {
				n, err := s.Tasks().CountLive(ctx, annOf("b"), 10)
				return int(n), err
			}, true, 0},
			{"stored tasks of an org", func(ctx context.Context) (int, error) {
				n, err := s.Tasks().Count(ctx, "large", 10)
				return int(n), err
			}, true, 10},
			{"pushes", func(ctx context.Context) (int, error) {
				due, dead, err := s.Deliveries().Count(ctx)
				return int(due + dead), err
			}, true, 0},
			{"tasks of a small org, filtered", tasks(dispatch.Filter{Org: "b", ContextID: "none"}), false, 0},
		} {
			w.slowly = false
			got, err := c.read(t.Context())
			if err != nil || got != c.want || w.slowly != c.slow {
				t.Errorf("%s: %d found, slow: %v, %v, want %d, slow: %v", c.name, got, w.slowly, err, c.want, c.slow)
			}
		}
	})
}

// addAgentProposal adds a proposal that an agent filed from friction.
func addAgentProposal(t *testing.T, s *Store, org string, i int) {
	t.Helper()
	now := time.Now().UTC()
	p := proposal.Proposal{
		Org: org, ID: propID(i), Title: "filed", Status: proposal.Open, Category: proposal.Process,
		Priority: proposal.Normal, SubmittedBy: "agent:bot", SubmittedAt: now, UpdatedAt: now, TextVersion: 1,
		Version: 1, Fingerprint: "x", Evidence: 3,
	}
	bot := identity.Principal{Org: org, Kind: identity.Agent, ID: "bot"}
	if _, err := s.Proposals().Insert(t.Context(), p, bot, nil); err != nil {
		t.Fatal(err)
	}
}

func addTasks(t *testing.T, s *Store, org string, n int) {
	t.Helper()
	var wg sync.WaitGroup
	for part := range 16 {
		wg.Go(func() {
			for i := part; i < n; i += 16 {
				id, now := fmt.Sprintf("t%06d", i), time.Now().UTC()
				c := task.Change{
					Task: task.Task{
						Org: org, UID: id, Agent: "bot-" + org, Sender: annOf(org), ID: id, State: task.Submitted, Seq: 1,
						CreatedAt: now, UpdatedAt: now,
					},
					Events: []task.Event{{Seq: 1, At: now, Kind: task.StatusEvent, State: task.Submitted}},
				}
				if err := s.Tasks().Insert(t.Context(), c, 0); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
