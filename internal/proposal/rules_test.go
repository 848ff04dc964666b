package proposal

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/errs/errstest"
	"github.com/parley-dev/parley/internal/identity"
)

// The tables of this file are complete: every status, every kind of caller.

var (
	submittedAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	decidedAt   = submittedAt.Add(time.Hour)
)

// caller is a viewer of the proposal that user:ann of acme submitted.
type caller struct {
	name      string
	principal identity.Principal
	admin     bool
	member    bool // of the proposal's org
	owns      bool // sees it as a draft, and may change its text
}

var (
	submitter = caller{name: "the submitter", principal: of("acme", identity.User, "ann"), member: true, owns: true}
	admin     = caller{name: "an admin", principal: of("acme", identity.User, "root"), admin: true, member: true, owns: true}
	stranger  = caller{name: "another user", principal: of("acme", identity.User, "bob"), member: true}
)

var callers = []caller{
	submitter, admin, stranger,
	{name: "the submitter as an admin", principal: submitter.principal, admin: true, member: true, owns: true},
	{name: "an agent with admin", principal: of("acme", identity.Agent, "ops"), admin: true, member: true, owns: true},
	{name: "an agent with the submitter's id", principal: of("acme", identity.Agent, "ann"), member: true},
	{name: "a service with the submitter's id", principal: of("acme", identity.Service, "ann"), member: true},
	{name: "an admin of another org", principal: of("other", identity.User, "root"), admin: true},
	{name: "a user of another org with the submitter's id", principal: of("other", identity.User, "ann")},
}

func of(org string, kind identity.Kind, id string) identity.Principal {
	return identity.Principal{Org: org, Kind: kind, ID: id}
}

func (c caller) viewer() Viewer { return Viewer{Principal: c.principal, Admin: c.admin} }

func (c caller) actor() Actor { return Actor{Viewer: c.viewer(), At: decidedAt} }

// sees states the rule of drafts independently of the code.
func (c caller) sees(s Status) bool { return c.member && (c.owns || s != Draft) }

// submitted returns the proposal that the tables start from.
func submitted(s Status) Proposal {
	return Proposal{
		Org: "acme", ID: "prop-00000000000000000000000001", Title: "Retry", Category: Reliability, Problem: "Calls fail.",
		SuggestedFix: "Repeat them.", Priority: Normal, Status: s, SubmittedBy: "user:ann", SubmittedAt: submittedAt,
		UpdatedAt: submittedAt, VotesFor: 10, VotesAgainst: 20, AgentsFor: 3, AgentsAgainst: 4,
		ResolutionNote: "an earlier note", DuplicateOf: "prop-earlier", TextVersion: 2, Version: 7,
	}
}

func TestWhoSeesAProposal(t *testing.T) {
	t.Parallel()
	for _, s := range Statuses {
		for _, c := range callers {
			p := submitted(s)
			if got, want := p.VisibleTo(c.viewer()), c.sees(s); got != want {
				t.Errorf("%s sees a proposal that is %s: got %v, want %v", c.name, s, got, want)
			}
		}
	}
}

// The table of section 3.1 of the specification.
var permitted = map[Status][]Status{
	Draft:    {Open},
	Open:     {Approved, Rejected},
	Approved: {Resolved},
	Rejected: {Open},
	Resolved: {},
}

func TestEveryStatusChange(t *testing.T) {
	t.Parallel()
	if len(permitted) != len(Statuses) {
		t.Fatalf("the table has %d statuses, want %d", len(permitted), len(Statuses))
	}
	vote := &Vote{Voter: "user:root", Choice: For}
	for _, from := range Statuses {
		for _, to := range Statuses {
			for _, c := range callers {
				name := fmt.Sprintf("%s from %s to %s", c.name, from, to)
				cur := Current{Proposal: submitted(from), Vote: vote}
				got, err := decideStatus(cur, c.actor(), Resolution{Status: to, Note: "because"}, "new-followup")
				switch {
				case !c.sees(from):
					if code := errstest.Code(err); code != "resource.not_found" {
						t.Errorf("%s: got %q, want resource.not_found", name, code)
					}
				case !slices.Contains(permitted[from], to):
					if code := errstest.Code(err); code != "proposal.transition_not_allowed" {
						t.Errorf("%s: got %q, want proposal.transition_not_allowed", name, code)
						continue
					}
					want := []string{}
					for _, s := range permitted[from] {
						want = append(want, string(s))
					}
					if diff := cmp.Diff(want, errs.As(err).Allowed); diff != "" {
						t.Errorf("%s: the allowed statuses (-want +got)\n%s", name, diff)
					}
				default:
					if err != nil {
						t.Errorf("%s: got %v, want no error", name, err)
					}
					if diff := cmp.Diff(changed(c, vote, from, to), got); diff != "" {
						t.Errorf("%s (-want +got)\n%s", name, diff)
					}
				}
			}
		}
	}
}

// changed returns the complete change of an allowed transition.
func changed(c caller, vote *Vote, from, to Status) Change {
	p := submitted(to)
	p.UpdatedAt, p.ResolutionNote, p.DuplicateOf = decidedAt, "because", ""
	want := Change{
		Vote:  vote,
		Entry: Entry{At: decidedAt, Actor: c.principal.Ref(), Kind: StatusChanged, From: from, To: to, Note: "because"},
	}
	if to == Approved {
		p.FollowupID, p.FollowupStatus = "new-followup", "open"
		want.Followup = &Followup{ID: "new-followup", Title: p.Title, Description: p.SuggestedFix, TextHash: p.TextHash()}
	}
	want.Proposal = p
	return want
}

func TestOnlyARejectionNeedsAReason(t *testing.T) {
	t.Parallel()
	for from, next := range permitted {
		for _, to := range next {
			for _, note := range []string{"", " \n\t\u00a0"} {
				_, err := decideStatus(Current{Proposal: submitted(from)}, admin.actor(), Resolution{
					Status: to,
					Note:   note,
				}, "f")
				var want []string
				if to == Rejected {
					want = []string{"resolution_note"}
				}
				if diff := cmp.Diff(want, errstest.Fields(err)); diff != "" {
					t.Errorf("from %s to %s with the note %q: broken fields (-want +got)\n%s", from, to, note, diff)
				}
			}
		}
	}
}

// The order of the checks matters: a caller that may not see a proposal learns nothing about it,
// and a stale version is reported before other errors.
func TestTheOrderOfRefusals(t *testing.T) {
	t.Parallel()
	old := int64(1)
	for _, c := range []struct {
		name string
		cur  Proposal
		by   caller
		r    Resolution
		want string
	}{
		{
			"everything is wrong", submitted(Draft), stranger,
			Resolution{Status: Resolved, IfVersion: &old, IfTextVersion: &old, DuplicateOf: "x"},
			"resource.not_found",
		},
		{
			"all but the caller is wrong", submitted(Draft), admin,
			Resolution{Status: Resolved, IfVersion: &old, IfTextVersion: &old, DuplicateOf: "x"},
			"request.stale",
		},
		{
			"the text and the status are wrong", submitted(Draft), admin,
			Resolution{Status: Resolved, IfTextVersion: &old, DuplicateOf: "x"},
			"proposal.text_changed",
		},
		{
			"the status and the original are wrong", submitted(Draft), admin,
			Resolution{Status: Resolved, DuplicateOf: "x"},
			"proposal.transition_not_allowed",
		},
		{
			"the original is wrong, and the reason is missing", submitted(Open), admin,
			Resolution{Status: Rejected, DuplicateOf: "x"},
			"request.invalid",
		},
		{"nothing is wrong", submitted(Open), admin, Resolution{Status: Approved}, ""},
	} {
		_, err := decideStatus(Current{Proposal: c.cur}, c.by.actor(), c.r, "f")
		if got := errstest.Code(err); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestEveryVote(t *testing.T) {
	t.Parallel()
	for _, s := range Statuses {
		for _, c := range callers {
			for _, before := range []Choice{"", For, Against} {
				for _, choice := range Choices {
					name := fmt.Sprintf("%s votes %s, after %q, on a proposal that is %s", c.name, choice, before, s)
					got, err := decideVote(Current{Proposal: submitted(s), Vote: cast(c, before)}, c.actor(), choice, "why")
					if want := voteRefusal(c, s); want != "" || err != nil {
						if code := errstest.Code(err); code != want {
							t.Errorf("%s: got %q, want %q", name, code, want)
						}
						continue
					}
					want := Change{
						Proposal: tallied(c, s, before, choice),
						Vote:     &Vote{Voter: c.principal.Ref(), Choice: choice, Comment: "why", VotedAt: decidedAt},
						Entry:    Entry{At: decidedAt, Actor: c.principal.Ref(), Kind: Voted, Choice: choice, Comment: "why"},
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%s (-want +got)\n%s", name, diff)
					}
				}
			}
		}
	}
}

func TestEveryWithdrawalOfAVote(t *testing.T) {
	t.Parallel()
	for _, s := range Statuses {
		for _, c := range callers {
			for _, before := range []Choice{"", For, Against} {
				name := fmt.Sprintf("%s withdraws %q from a proposal that is %s", c.name, before, s)
				got, err := decideWithdrawal(Current{Proposal: submitted(s), Vote: cast(c, before)}, c.actor())
				refused := voteRefusal(c, s)
				if refused == "" && before == "" {
					refused = "resource.not_found"
				}
				if refused != "" || err != nil {
					if code := errstest.Code(err); code != refused {
						t.Errorf("%s: got %q, want %q", name, code, refused)
					}
					continue
				}
				want := Change{
					Proposal: tallied(c, s, before, ""),
					Entry:    Entry{At: decidedAt, Actor: c.principal.Ref(), Kind: VoteWithdrawn, Choice: before},
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got)\n%s", name, diff)
				}
			}
		}
	}
}

// cast returns the caller's earlier vote; nil without a choice.
func cast(c caller, choice Choice) *Vote {
	if choice == "" {
		return nil
	}
	return &Vote{Voter: c.principal.Ref(), Choice: choice, Comment: "earlier", VotedAt: submittedAt}
}

// voteRefusal returns the code of the refusal of a vote, or "".
func voteRefusal(c caller, s Status) string {
	switch {
	case !c.sees(s):
		return "resource.not_found"
	case s != Open:
		return "proposal.not_open"
	}
	return ""
}

// tallied returns the proposal after the caller's vote changed; an empty choice is no vote.
func tallied(c caller, s Status, before, after Choice) Proposal {
	p := submitted(s)
	p.UpdatedAt = decidedAt
	delta := func(choice Choice) int {
		n := 0
		if after == choice {
			n++
		}
		if before == choice {
			n--
		}
		return n
	}
	p.VotesFor, p.VotesAgainst = 10+delta(For), 20+delta(Against)
	if c.principal.Kind == identity.Agent {
		p.AgentsFor, p.AgentsAgainst = 3+delta(For), 4+delta(Against)
	}
	return p
}

func TestWhoMayEditWhat(t *testing.T) {
	t.Parallel()
	title := "Retry twice"
	for _, s := range Statuses {
		for _, c := range callers {
			want := ""
			switch {
			case !c.sees(s):
				want = "resource.not_found"
			case !c.owns:
				want = "proposal.not_yours"
			case s == Approved || s == Rejected || s == Resolved:
				want = "proposal.not_editable"
			}
			got, err := decideEdit(Current{Proposal: submitted(s)}, c.actor(), Edit{Title: &title})
			if code := errstest.Code(err); code != want {
				t.Errorf("%s edits a proposal that is %s: got %q, want %q", c.name, s, code, want)
			}
			if want == "" && got.Proposal.Title != title {
				t.Errorf("%s edits a proposal that is %s: the title is %q, want %q", c.name, s, got.Proposal.Title, title)
			}
		}
	}
}

// Every set of fields that one edit can have.
func TestEverySetOfEditedFields(t *testing.T) {
	t.Parallel()
	const text = "changed"
	high, security := High, Security
	edits := []struct {
		field  string
		isText bool
		from   string
		to     string
		ask    func(*Edit)
		done   func(*Proposal)
	}{
		{"title", true, "Retry", text, func(e *Edit) { e.Title = ptr(text) }, func(p *Proposal) { p.Title = text }},
		{
			"category", false, "reliability", "security", func(e *Edit) { e.Category = &security },
			func(p *Proposal) { p.Category = Security },
		},
		{
			"problem", true, "Calls fail.", text, func(e *Edit) { e.Problem = ptr(text) },
			func(p *Proposal) { p.Problem = text },
		},
		{
			"suggested_fix", true, "Repeat them.", text, func(e *Edit) { e.SuggestedFix = ptr(text) },
			func(p *Proposal) { p.SuggestedFix = text },
		},
		{"priority", false, "normal", "high", func(e *Edit) { e.Priority = &high }, func(p *Proposal) { p.Priority = High }},
	}
	by := submitter
	for set := range 1 << len(edits) {
		var e Edit
		want, isText := Change{Proposal: submitted(Open), Entry: Entry{At: decidedAt, Actor: "user:ann", Kind: Edited}}, false
		for i, f := range edits {
			if set&(1<<i) == 0 {
				continue
			}
			f.ask(&e)
			f.done(&want.Proposal)
			want.Entry.Changes = append(want.Entry.Changes, FieldChange{Field: f.field, From: f.from, To: f.to})
			isText = isText || f.isText
		}
		if isText {
			want.Proposal.TextVersion = 3
		}
		if set == 0 {
			want.Entry = Entry{}
		} else {
			want.Proposal.UpdatedAt = decidedAt
		}
		got, err := decideEdit(Current{Proposal: submitted(Open)}, by.actor(), e)
		if err != nil {
			t.Errorf("set %05b: got %v, want no error", set, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("set %05b (-want +got)\n%s", set, diff)
		}
		// Repeating the edit changes nothing.
		again, err := decideEdit(Current{Proposal: got.Proposal}, by.actor(), e)
		if diff := cmp.Diff(Change{Proposal: got.Proposal}, again); diff != "" || err != nil {
			t.Errorf("set %05b again: %v (-want +got)\n%s", set, err, diff)
		}
	}
}

func ptr[T any](v T) *T { return &v }

func TestVersionsThatADecisionWasMadeOn(t *testing.T) {
	t.Parallel()
	title := "Retry twice"
	p := submitted(Open) // version 7, text version 2
	for _, c := range []struct {
		name          string
		version, text *int64
		want          string
	}{
		{"none was given", nil, nil, ""},
		{"both are current", ptr(int64(7)), ptr(int64(2)), ""},
		{"the record is older", ptr(int64(6)), nil, "request.stale"},
		{"the record is newer", ptr(int64(8)), nil, "request.stale"},
		{"the text is older", nil, ptr(int64(1)), "proposal.text_changed"},
		{"the text is newer", nil, ptr(int64(3)), "proposal.text_changed"},
		{"the record is older, the text current", ptr(int64(6)), ptr(int64(2)), "request.stale"},
		{"the record is current, the text older", ptr(int64(7)), ptr(int64(1)), "proposal.text_changed"},
		{"both are older", ptr(int64(6)), ptr(int64(1)), "request.stale"},
	} {
		_, err := decideStatus(Current{Proposal: p}, admin.actor(), Resolution{
			Status: Approved, IfVersion: c.version,
			IfTextVersion: c.text,
		}, "f")
		if got := errstest.Code(err); got != c.want {
			t.Errorf("%s, to approve: got %q, want %q", c.name, got, c.want)
		}
		_, err = decideEdit(Current{Proposal: p}, admin.actor(), Edit{
			Title: &title, IfVersion: c.version,
			IfTextVersion: c.text,
		})
		if got := errstest.Code(err); got != c.want {
			t.Errorf("%s, to edit: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestResolvable(t *testing.T) {
	t.Parallel()
	for _, s := range Statuses {
		for _, followup := range []string{"", "open", "in_progress", "done", "canceled"} {
			p := Proposal{Status: s, FollowupStatus: followup}
			if got, want := p.Resolvable(), s == Approved && followup == "done"; got != want {
				t.Errorf("%s with a follow-up that is %q: got %v, want %v", s, followup, got, want)
			}
		}
	}
}

func TestTallies(t *testing.T) {
	t.Parallel()
	p := submitted(Open)
	if got, want := p.People(), (Tally{For: 7, Against: 16}); got != want {
		t.Errorf("votes of people: got %+v, want %+v", got, want)
	}
	if got, want := p.Agents(), (Tally{For: 3, Against: 4}); got != want {
		t.Errorf("votes of agents: got %+v, want %+v", got, want)
	}
}

// The hash covers the three texts, separately, and nothing else.
func TestTheHashOfATextIsItsOwn(t *testing.T) {
	t.Parallel()
	hash := func(title, problem, fix string) string {
		p := submitted(Open)
		p.Title, p.Problem, p.SuggestedFix = title, problem, fix
		return p.TextHash()
	}
	seen := map[string]string{}
	for _, c := range [][3]string{
		{
			"", "", "",
		}, {"a", "", ""}, {"", "a", ""}, {"", "", "a"}, {"ab", "c", ""}, {"a", "bc", ""}, {"a", "b", "c"}, {
			"c",
			"b", "a",
		},
	} {
		got, name := hash(c[0], c[1], c[2]), fmt.Sprintf("%q", c)
		if other, ok := seen[got]; ok {
			t.Errorf("%s has the hash of %s, want one of its own", name, other)
		}
		seen[got] = name
	}
	p := submitted(Draft)
	want := p.TextHash()
	p.Status, p.Category, p.Priority, p.VotesFor, p.Version, p.TextVersion = Open, Feature, High, 99, 99, 99
	if got := p.TextHash(); got != want {
		t.Errorf("the hash after changes beside the text: got %s, want %s", got, want)
	}
}

func TestRanksFollowTheUrgency(t *testing.T) {
	t.Parallel()
	for p, want := range map[Priority]int{Low: 0, Normal: 1, High: 2, "": -1, "urgent": -1} {
		if got := p.Rank(); got != want {
			t.Errorf("rank of %q: got %d, want %d", p, got, want)
		}
	}
}
