package storetest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// populate creates n proposals of every status, category, priority and submitter, with votes,
// and returns their current state.
func populate(w *world, n int) []proposal.Proposal {
	ctx := w.Context()
	rnd := rand.New(rand.NewPCG(1, 2)) // the same rows in every run
	admin := w.access("acme", "user:root")
	members := []identity.Access{
		w.access("acme", "user:ann", memberScopes...), w.access("acme", "agent:bob", memberScopes...),
		w.access("acme", "agent:cy", memberScopes...),
	}
	var all []proposal.Proposal
	for i := range n {
		p := w.submit(members[rnd.IntN(len(members))], func(s *proposal.Submission) {
			s.Title = fmt.Sprintf("Proposal %d", i)
			s.Category = proposal.Categories[rnd.IntN(len(proposal.Categories))]
			s.Priority = proposal.Priorities[rnd.IntN(len(proposal.Priorities))]
			if rnd.IntN(5) == 0 {
				s.Status = proposal.Draft
			}
		})
		for _, m := range members {
			if p.Status == proposal.Open && rnd.IntN(2) == 0 {
				out, err := w.proposals.Vote(ctx, m, p.ID, proposal.Ballot{Choice: proposal.Choices[rnd.IntN(2)]})
				w.must(err)
				p = out.Proposal
			}
		}
		for p.Status != proposal.Draft && len(p.Status.Next()) > 0 && rnd.IntN(2) == 0 {
			next := p.Status.Next()
			out, err := w.proposals.Resolve(ctx, admin, p.ID, proposal.Resolution{
				Status: next[rnd.IntN(len(next))], Note: "so",
			})
			w.must(err)
			p = out.Proposal
		}
		all = append(all, p)
	}
	return all
}

// testListAgainstModel compares every combination of filters with a plain scan.
func testListAgainstModel(w *world) {
	all := populate(w, 150)
	w.submit(w.access("other", "user:eve"), nil) // must never appear
	viewers := []identity.Access{w.access("acme", "user:ann", memberScopes...), w.access("acme", "user:root")}
	for _, a := range viewers {
		for _, status := range append([]proposal.Status{"", proposal.All}, proposal.Statuses...) {
			for _, category := range []proposal.Category{"", proposal.Security} {
				for _, priority := range []proposal.Priority{"", proposal.High} {
					for _, by := range []string{"", "agent:bob", "user:ann"} {
						for _, sort := range proposal.Sorts {
							q := proposal.Query{
								Status: status, Category: category, Priority: priority, SubmittedBy: by, Sort: sort, Limit: 100,
							}
							page, err := w.proposals.List(w.Context(), a, q)
							w.must(err)
							want := model(all, a, q)
							if page.Total != int64(len(want)) {
								w.Fatalf("%s %+v: total %d, want %d", a.Principal().Ref(), q, page.Total, len(want))
							}
							if diff := gocmp.Diff(want[:min(len(want), 100)], ids(page.Items)); diff != "" {
								w.Fatalf("%s %+v: diff of the ids (-want +got):\n%s", a.Principal().Ref(), q, diff)
							}
						}
					}
				}
			}
		}
	}
}

// model returns the list that a scan would give.
func model(all []proposal.Proposal, a identity.Access, q proposal.Query) []string {
	if q.Status == "" {
		q.Status = proposal.Open
	}
	v := proposal.Viewer{Principal: a.Principal(), Admin: a.Has(identity.Admin)}
	var hits []proposal.Proposal
	for _, p := range all {
		if p.VisibleTo(v) && (q.Status == proposal.All || p.Status == q.Status) &&
			(q.Category == "" || p.Category == q.Category) &&
			(q.Priority == "" || p.Priority == q.Priority) && (q.SubmittedBy == "" || p.SubmittedBy == q.SubmittedBy) {
			hits = append(hits, p)
		}
	}
	slices.SortFunc(hits, func(x, y proposal.Proposal) int {
		switch q.Sort {
		case proposal.SortOldest:
			return cmp.Compare(x.ID, y.ID)
		case proposal.SortVotes:
			return cmp.Or(-cmp.Compare(x.VotesFor-x.VotesAgainst, y.VotesFor-y.VotesAgainst), -cmp.Compare(x.ID, y.ID))
		case proposal.SortReview:
			return cmp.Or(-cmp.Compare(x.Priority.Rank(), y.Priority.Rank()), -cmp.Compare(x.ID, y.ID))
		default:
			return -cmp.Compare(x.ID, y.ID)
		}
	})
	out := []string{}
	for _, p := range hits {
		out = append(out, p.ID)
	}
	return out
}

func ids(items []proposal.Item) []string {
	out := []string{}
	for _, it := range items {
		out = append(out, it.ID)
	}
	return out
}

// testWalk reads the list in every order by page and by cursor.
func testWalk(w *world) {
	ctx := w.Context()
	all := populate(w, 60)
	admin := w.access("acme", "user:root")
	for _, status := range []proposal.Status{proposal.All, proposal.Open} {
		for _, sort := range proposal.Sorts {
			want := model(all, admin, proposal.Query{Status: status, Sort: sort})
			var byPage, byCursor []string
			q := proposal.Query{Status: status, Sort: sort, Limit: 7}
			for q.Page = 1; ; q.Page++ {
				page, err := w.proposals.List(ctx, admin, q)
				w.must(err)
				if page.Total != int64(len(want)) || page.Number != q.Page {
					w.Fatalf("page %d says number %d, total %d, want total %d", q.Page, page.Number, page.Total, len(want))
				}
				if len(page.Items) == 0 {
					break
				}
				byPage = append(byPage, ids(page.Items)...)
			}
			q.Page = 0
			for n := 1; ; n++ {
				page, err := w.proposals.List(ctx, admin, q)
				w.must(err)
				if page.Number != n {
					w.Fatalf("number of the cursor page = %d, want %d", page.Number, n)
				}
				byCursor = append(byCursor, ids(page.Items)...)
				if q.Cursor = page.Next; q.Cursor == "" {
					break
				}
			}
			if diff := gocmp.Diff(want, byPage); diff != "" {
				w.Errorf("%s %s by page: diff of the ids (-want +got):\n%s", status, sort, diff)
			}
			if diff := gocmp.Diff(want, byCursor); diff != "" {
				w.Errorf("%s %s by cursor: diff of the ids (-want +got):\n%s", status, sort, diff)
			}
		}
	}
}

// testSearchLarge searches in an org that is too large for a scan.
func testSearchLarge(w *world) {
	ann := w.access("acme", "user:ann", memberScopes...)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 100 {
				s := proposal.Submission{Title: "Filler", Category: proposal.Process, Problem: "Filler.", SuggestedFix: "Filler."}
				if _, err := w.proposals.Submit(w.Context(), ann, s); err != nil {
					w.Error(err)
				}
			}
		})
	}
	wg.Wait()
	testSearch(w)
	page, err := w.proposals.List(w.Context(), ann, proposal.Query{
		Text: "fill", Sort: proposal.SortOldest, Limit: 100, Page: 16,
	})
	w.must(err)
	if page.Total != 1600 || len(page.Items) != 100 {
		w.Errorf("%d items of %d, want 100 of 1600", len(page.Items), page.Total)
	}
}

func testSearch(w *world) {
	ctx := w.Context()
	ann := w.access("acme", "user:ann", memberScopes...)
	add := func(title, problem string) string {
		return w.submit(ann, func(s *proposal.Submission) {
			s.Title, s.Problem, s.SuggestedFix = title, problem, "Fix it."
		}).ID
	}
	upload := add("Upload fails on e-mail gateways", "See https://example.com/path?x=1 for `foo_bar`.")
	cafe := add("Café menü", "Größe 北京 стол")
	rocket := add("数据库性能优化 🚀", "5 € more")
	third := add("Uploading twice", "AND OR NOT NEAR \"quoted\" * ( ) : ^ it's")
	w.submit(w.access("other", "user:eve"), func(s *proposal.Submission) { s.Title = "Upload secrets" })
	find := func(q string) []string {
		w.Helper()
		page, err := w.proposals.List(ctx, ann, proposal.Query{Text: q, Sort: proposal.SortOldest})
		w.must(err)
		if page.Total != int64(len(page.Items)) {
			w.Errorf("q=%q: total = %d, want %d", q, page.Total, len(page.Items))
		}
		return ids(page.Items)
	}
	for _, c := range []struct {
		q    string
		want []string
	}{
		{"upload", []string{upload, third}}, // the last word is a prefix
		{"upload fails", []string{upload}},
		{"fails upload", []string{upload}},
		{"UPLOAD", []string{upload, third}},
		{"uploa fails", []string{}}, // the first word is no prefix
		{"e-mail", []string{upload}},
		{"example", []string{upload}},
		{"foo_bar", []string{upload}},
		{"path x", []string{upload}},
		{"café", []string{cafe}},
		{"CAFÉ GRÖSSE", []string{cafe}}, // ß is ss in upper case
		{"cafe grosse", []string{cafe}}, // accents are optional
		{"京", []string{cafe}},
		{"🚀", []string{rocket}},
		{"€", []string{rocket}},
		{"优化", []string{rocket}},
		{"性能优化", []string{rocket}},
		{"性化", []string{}},
		{"größe", []string{cafe}},
		{"北京", []string{cafe}},
		{"стол", []string{cafe}},
		{"AND", []string{third}},
		{"not near", []string{third}},
		{`"quoted" *`, []string{third}},
		{"it's", []string{upload, third}}, // the words it and s…
		{"' OR 1=1 --", []string{}},
		{"secrets", []string{}},
		{"fix", []string{upload, cafe, rocket, third}},
	} {
		if diff := gocmp.Diff(c.want, find(c.q)); diff != "" {
			w.Errorf("q=%q: diff of the ids (-want +got):\n%s", c.q, diff)
		}
	}
	title := "Downloads"
	_, err := w.proposals.Edit(ctx, ann, third, proposal.Edit{Title: &title})
	w.must(err)
	if diff := gocmp.Diff([]string{upload}, find("upload")); diff != "" {
		w.Errorf("search for upload after an edit: diff of the ids (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff([]string{third}, find("near downloads")); diff != "" {
		w.Errorf("search for near downloads after an edit: diff of the ids (-want +got):\n%s", diff)
	}
	_, err = w.proposals.Vote(ctx, ann, upload, proposal.Ballot{Choice: proposal.For})
	w.must(err)
	if diff := gocmp.Diff([]string{upload}, find("gateways")); diff != "" {
		w.Errorf("search after a vote: diff of the ids (-want +got):\n%s", diff)
	}
}
