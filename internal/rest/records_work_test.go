package rest

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/task"
)

// encoded returns what a response contains.
func encoded(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	if err := httpx.WriteJSON(&b, v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// recordOf returns a proposal as the documented type, whose encoding is the standard for others.
func recordOf(p *proposal.Proposal, vote *proposal.Vote) Proposal {
	r := Proposal{
		ID: p.ID, Title: p.Title, Category: string(p.Category), Problem: p.Problem, SuggestedFix: p.SuggestedFix,
		Priority: string(p.Priority), Status: string(p.Status), SubmittedBy: p.SubmittedBy,
		SubmittedAt: stamp(p.SubmittedAt), UpdatedAt: stamp(p.UpdatedAt),
		VotesFor: p.VotesFor, VotesAgainst: p.VotesAgainst,
		VotesBy:        VotesBy{People: Tally(p.People()), Agents: Tally(p.Agents())},
		ResolutionNote: p.ResolutionNote, DuplicateOf: orNull(p.DuplicateOf), AllowedTransitions: names(p.Status.Next()),
		FollowupID: orNull(p.FollowupID), FollowupStatus: orNull(p.FollowupStatus), Resolvable: p.Resolvable(),
		Fingerprint: orNull(p.Fingerprint), EvidenceCount: p.Evidence, TextVersion: p.TextVersion,
	}
	if vote != nil {
		r.MyVote = orNull(string(vote.Choice))
	}
	return r
}

// The data of an event is the record as a response shows it, byte for byte, except for the reader's
// own vote.
func FuzzRecords(f *testing.F) {
	for _, s := range []string{
		"", "plain", `quotes " and \ and /`, "tab\tline\nreturn\r\x00\x1f\x7f", "<b>&amp;</b>", "\xff\xc3\x28 invalid",
		"line\u2028paragraph\u2029", "ü 漢字 😀 \ufffd", `"my_vote":null,`,
	} {
		f.Add(s, "x"+s, int64(1_772_357_400_123_456), 3)
		f.Add("x", s, int64(0), 0)
		f.Add(s, s, int64(-1), -7)
	}
	f.Fuzz(func(t *testing.T, one, two string, micros int64, n int) {
		at := time.UnixMicro(micros % (1 << 55)).In(time.FixedZone("east", 7200))
		for i, status := range append(proposal.Statuses, proposal.Status(one)) {
			p := proposal.Proposal{
				Org: "acme", ID: one, Title: two, Category: proposal.Category(one), Problem: two, SuggestedFix: one,
				Priority: proposal.Priority(two), Status: status, SubmittedBy: one, SubmittedAt: at,
				UpdatedAt: at.Add(time.Duration(n) * time.Hour), VotesFor: n, VotesAgainst: n + i, AgentsFor: i,
				AgentsAgainst: n / 2, ResolutionNote: two, DuplicateOf: one, FollowupID: two, FollowupStatus: "done",
				Fingerprint: one, Evidence: int64(n), TextVersion: micros, Version: 7,
			}
			if i%2 == 0 {
				p.FollowupStatus = ""
			}
			want := strings.Replace(encoded(t, recordOf(&p, nil)), `"my_vote":null,`, "", 1)
			if got := string(Records{}.Proposal(&p)); got != want {
				t.Errorf("proposal:\n got %s\nwant %s", got, want)
			}
			for _, vote := range []*proposal.Vote{nil, {}, {Choice: proposal.Choice(two)}} {
				want := encoded(t, recordOf(&p, vote))
				if got := encoded(t, shownProposal{&p, vote}); got != want {
					t.Errorf("response:\n got %s\nwant %s", got, want)
				}
			}
		}
		k := task.Task{
			UID: one, Org: "acme", Agent: two, Sender: identity.Principal{Org: one, Kind: identity.User, ID: two}, ID: two,
			ContextID: one, FollowupID: two, State: task.State(one), Attempts: n, CreatedAt: at, UpdatedAt: at.Add(1),
		}
		if got, want := string(Records{}.Task(&k)), encoded(t, orgTaskOf(&k)); got != want {
			t.Errorf("task:\n got %s\nwant %s", got, want)
		}
	})
}

func BenchmarkRecords(b *testing.B) {
	text := strings.Repeat("the quick brown fox jumps over lazy dogs ", 6)
	p := proposal.Proposal{ID: exampleProposalID, Title: "Retry", Problem: text, SuggestedFix: text, Status: proposal.Open}
	k := task.Task{UID: "01k5xb7d2n8f4j6s0a9g3r5w1c", ID: "crm-4711", Agent: "scout", State: task.Working}
	b.Run("proposal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Records{}.Proposal(&p)
		}
	})
	b.Run("task", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Records{}.Task(&k)
		}
	})
}
