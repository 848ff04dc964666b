package store_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/pgtest"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/rest"
	"github.com/parley-dev/parley/internal/store"
)

// BenchmarkStore measures the store without HTTP: `go test ./internal/store -run - -bench .`
func BenchmarkStore(b *testing.B) {
	for _, engine := range []string{"sqlite", "postgres"} {
		b.Run(engine, func(b *testing.B) {
			o := store.Options{Dir: b.TempDir(), Records: rest.Records{}}
			if engine == "postgres" {
				o = store.Options{URL: pgtest.URL(b), Records: rest.Records{}}
			}
			s, err := store.Open(b.Context(), o)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = s.Close() })
			createMain(b, s)
			var ids atomic.Int64
			newID := func(prefix string) string { return fmt.Sprintf("%s%026d", prefix, ids.Add(1)) }
			svc := proposal.New(s.Proposals(), func() time.Time { return time.Now().UTC() }, newID)
			ann := identity.Principal{Org: "main", Kind: identity.User, ID: "ann"}
			caller := &identity.Caller{Principal: ann, Scopes: identity.AllScopes}
			to := func(action identity.Action) identity.Access {
				a, err := identity.Authorize(caller, "main", action)
				if err != nil {
					b.Fatal(err)
				}
				return a
			}
			text := strings.Repeat("the quick brown fox jumps over lazy dogs ", 6)
			parallel := func(name string, fn func(n int64) error) {
				b.Run(name, func(b *testing.B) {
					var n atomic.Int64
					b.SetParallelism(32)
					b.ReportAllocs()
					b.RunParallel(func(pb *testing.PB) {
						for pb.Next() {
							if err := fn(n.Add(1)); err != nil {
								b.Error(err)
								return
							}
						}
					})
				})
			}
			parallel("submit", func(n int64) error {
				_, err := svc.Submit(b.Context(), to(identity.SubmitProposal), proposal.Submission{
					Title:    fmt.Sprintf("Proposal number %d of the benchmark", n),
					Category: proposal.Categories[n%6], Priority: proposal.Priorities[n%3],
					Problem: text, SuggestedFix: text,
				})
				return err
			})
			made := ids.Load()
			parallel("vote", func(n int64) error {
				_, err := svc.Vote(b.Context(), to(identity.VoteOnProposal), fmt.Sprintf("prop-%026d", n%made+1),
					proposal.Ballot{Choice: proposal.For})
				return err
			})
			parallel("get", func(n int64) error {
				_, err := svc.Get(b.Context(), to(identity.ReadProposal), fmt.Sprintf("prop-%026d", n%made+1))
				return err
			})
			for name, q := range map[string]proposal.Query{
				"list": {}, "list all newest": {Status: proposal.All, Sort: proposal.SortNewest},
				"list category votes": {Category: proposal.Security, Sort: proposal.SortVotes},
			} {
				parallel(name, func(int64) error {
					_, err := svc.List(b.Context(), to(identity.ListProposals), q)
					return err
				})
			}
		})
	}
}

// createMain creates the org of the benchmarks. Without it, events would get no numbers.
func createMain(b *testing.B, s *store.Store) {
	b.Helper()
	operator := identity.NewOperator(s.IdentityStores(), time.Now, func(prefix string) string { return prefix })
	if _, err := operator.CreateOrg(b.Context(), "main", ""); err != nil {
		b.Fatal(err)
	}
}
