package demo

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/task"
)

func lower(id ulid.ULID) string { return strings.ToLower(id.String()) }

func TestSeed(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	if unfinished(t, w.store) {
		t.Error("the demo is not finished after its end")
	}
	for name, check := range map[string]func(*testing.T, *town){
		"forty proposals of every kind":        checkProposals,
		"histories agree with their proposals": checkHistories,
		"work in every state":                  checkFollowups,
		"tasks in every state":                 checkTasks,
		"members, agents and keys":             checkMembers,
		"events in the order of time":          checkEvents,
	} {
		t.Run(name, func(t *testing.T) {
			seen := *w
			seen.TB = t
			check(t, &seen)
		})
	}
}

func checkProposals(t *testing.T, w *town) {
	count, evidence, comments := map[any]int{}, 0, 0
	for _, p := range w.proposals() {
		count["all"]++
		count[p.Status]++
		count[p.Category]++
		count[p.Priority]++
		if p.Evidence > 0 {
			evidence++
		}
		votes, _, err := w.Proposals.Votes(t.Context(), w.must(identity.ReadProposal), p.ID, &proposal.Paging{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range votes {
			if v.Comment != "" {
				comments++
			}
		}
		if len(votes) != p.VotesFor+p.VotesAgainst {
			t.Errorf("%q has %d votes, want %d for and %d against", p.Title, len(votes), p.VotesFor, p.VotesAgainst)
		}
	}
	if count["all"] != 40 {
		t.Errorf("there are %d proposals, want 40", count["all"])
	}
	for _, s := range proposal.Statuses {
		if count[s] < 3 {
			t.Errorf("%d proposals are %s, want at least 3", count[s], s)
		}
	}
	for _, c := range proposal.Categories {
		if count[c] < 4 {
			t.Errorf("%d proposals are about %s, want at least 4", count[c], c)
		}
	}
	for _, p := range proposal.Priorities {
		if count[p] < 5 {
			t.Errorf("%d proposals have the priority %s, want at least 5", count[p], p)
		}
	}
	if evidence < 4 || comments < 15 {
		t.Errorf("%d proposals have evidence and %d votes a comment, want at least 4 and 15", evidence, comments)
	}
}

func checkHistories(t *testing.T, w *town) {
	for _, p := range w.proposals() {
		list, _, err := w.Proposals.History(t.Context(), w.must(identity.ReadProposal), p.ID, &proposal.Paging{Limit: 100})
		if err != nil || len(list) == 0 {
			t.Fatalf("history of %q: %v, %v", p.Title, list, err)
		}
		if first := list[0]; first.Kind != proposal.Submitted || !first.At.Equal(p.SubmittedAt) ||
			first.Actor != p.SubmittedBy {
			t.Errorf("the history of %q begins with %+v, want its submission", p.Title, first)
		}
		for i, e := range list {
			if e.At.After(w.start) || i > 0 && e.At.Before(list[i-1].At) {
				t.Errorf("entry %d of %q is at %s, want the order of time", i, p.Title, e.At)
			}
			if e.Kind == proposal.StatusChanged && e.To == proposal.Rejected && e.Note == "" {
				t.Errorf("%q was rejected without a reason", p.Title)
			}
		}
		last := list[len(list)-1]
		if p.Status != proposal.Open && p.Status != proposal.Draft && last.To != p.Status {
			t.Errorf("%q is %s, and its history ends with %+v", p.Title, p.Status, last)
		}
		if age := w.start.Sub(p.SubmittedAt); age > Age {
			t.Errorf("%q is older than the company: %s", p.Title, age)
		}
	}
}

func checkFollowups(t *testing.T, w *town) {
	list, _, err := w.Followups.List(t.Context(), w.must(identity.ListFollowups), &followup.Query{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	count := map[followup.Status]int{}
	byAgents := 0
	for _, f := range list {
		count[f.Status]++
		if f.TaskUID != "" {
			byAgents++
		}
	}
	for _, s := range followup.Statuses {
		if count[s] == 0 {
			t.Errorf("no follow-up is %s", s)
		}
	}
	if byAgents < 3 {
		t.Errorf("%d follow-ups are tasks of agents, want at least 3", byAgents)
	}
}

func checkTasks(t *testing.T, w *town) {
	count, waiting := map[task.State]int{}, 0
	for _, x := range w.tasks() {
		count[x.State]++
		if x.State == task.Submitted && x.Agent != offline {
			t.Errorf("%s has a task in its queue, want only %s to have one", x.Agent, offline)
		}
		if x.State == task.Working {
			t.Errorf("task %s of %s has a worker that is not there", x.ID, x.Agent)
		}
		if x.State == task.InputRequired && x.Sender.ID == Founding.Admin {
			waiting++
		}
	}
	for state, least := range map[task.State]int{
		task.Completed: 25, task.Failed: 4, task.Canceled: 3, task.InputRequired: 3, task.Submitted: 3,
	} {
		if count[state] < least {
			t.Errorf("%d tasks are %s, want at least %d", count[state], state, least)
		}
	}
	if waiting == 0 {
		t.Error("no question waits for the admin")
	}
}

func (w *town) tasks() (list []task.Task) {
	w.Helper()
	f := dispatch.Filter{Org: Founding.Org, Limit: dispatch.MaxLimit}
	for {
		page, err := w.Tasks.OrgTasks(w.Context(), w.must(identity.ReadTasks), f)
		if err != nil {
			w.Fatal(err)
		}
		page = page[:min(len(page), f.Limit)]
		list = append(list, page...)
		if len(page) < f.Limit {
			return list
		}
		f.Before = page[len(page)-1].UID
	}
}

func checkMembers(t *testing.T, w *town) {
	users := identity.MemberFilter{Kind: identity.User}
	members, err := w.OrgAdmin.Members(t.Context(), w.must(identity.ReadMembers), users)
	if err != nil || len(members) < 8 {
		t.Errorf("%d people, %v; want at least 8", len(members), err)
	}
	list, err := w.Agents.Visible(t.Context(), w.must(identity.ReadAgents))
	if err != nil || len(list) != len(agents) {
		t.Errorf("%d agents, %v; want %d", len(list), err, len(agents))
	}
	for _, a := range list {
		p, err := w.Agents.Profile(t.Context(), w.must(identity.ReadAgents), a.ID)
		if err != nil || len(a.Rich(&p)) == 0 || a.Description == "" {
			t.Errorf("agent %s has no described skill: %+v, %v", a.ID, p, err)
		}
		if len(workers[a.ID]) == 0 {
			t.Errorf("agent %s has no worker", a.ID)
		}
	}
	ending, err := w.OrgAdmin.Keys(t.Context(), w.must(identity.ReadKeys), identity.KeyFilter{EndsWithin: 14 * day})
	if err != nil || len(ending) == 0 {
		t.Errorf("%d keys end within 14 days, %v; want some", len(ending), err)
	}
}

func checkEvents(t *testing.T, w *town) {
	about := map[string][]event.Type{}
	var last time.Time
	for _, e := range w.events() {
		if e.At.Before(last) {
			t.Errorf("event %d, %s, is at %s, before the event that it follows (%s)", e.Seq, e.Type, e.At, last)
		}
		last = e.At
		about[e.Subject] = append(about[e.Subject], e.Type)
	}
	for _, p := range w.proposals() {
		list, _, err := w.Proposals.History(t.Context(), w.must(identity.ReadProposal), p.ID, &proposal.Paging{Limit: 100})
		if got := about["proposal:"+p.ID]; err != nil || len(got) != len(list) {
			t.Errorf("%q has %d entries and the events %v, %v; want one for each", p.Title, len(list), got, err)
		}
	}
	ends := map[task.State]event.Type{
		task.Completed: event.TaskCompleted, task.Failed: event.TaskFailed, task.Canceled: event.TaskCanceled,
		task.InputRequired: event.TaskInputRequired, task.Submitted: event.TaskCreated,
	}
	for _, x := range w.tasks() {
		got := about["task:"+x.UID]
		if !slices.Contains(got, event.TaskCreated) || got[len(got)-1] != ends[x.State] {
			t.Errorf("task %s is %s and has the events %v", x.ID, x.State, got)
		}
	}
}
