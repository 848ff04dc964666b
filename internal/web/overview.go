package web

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/task"
)

func (p *Pages) mountOverview() {
	p.orgPages(map[string]handler{"GET /overview": (*visit).overviewPage})
}

// overviewView is the start page of an org: what waits for the member. Everything on it links to
// the list that it summarizes.
type overviewView struct {
	Priorities []openCount
	Open       int64
	Oldest     []proposal.Item
	OldestHref string

	Asking     []askingRow
	MoreAsking bool
	AskingHref string // list of the tasks of the org's agents that ask, for admins

	Admin     bool
	Attention []attention
	Month     []figure
}

// openCount is the number of open proposals of a priority.
type openCount struct {
	Priority proposal.Priority
	Count    int64
	Href     string
}

// askingRow is a task whose agent asks its sender for something.
type askingRow struct {
	task.Task
	Sender string // a ref
	Href   string // page of the task; "" if another org has it
	Mine   bool
	Access bool // asks for an authorization
}

// figure is a number with its list.
type figure struct {
	Name, Value, Text, Href string
}

const (
	overviewOldest = 5
	overviewAsking = 5
	overviewMonth  = 30 * oneDay
)

// overviewPage shows what waits. It reads a bounded number of rows, by indexes and counters.
func (v *visit) overviewPage() error {
	a, err := v.access(identity.ListProposals)
	if err != nil {
		return err
	}
	out := overviewView{Admin: v.may(identity.ReadTasks), OldestHref: link(v.base()+"/proposals", "sort", "oldest")}
	if err := v.fillOpen(a, &out); err != nil {
		return err
	}
	if err := v.fillAsking(&out); err != nil {
		return err
	}
	if out.Admin {
		if out.Attention, err = v.attention(); err != nil {
			return err
		}
	}
	if out.Month, err = v.month(a); err != nil {
		return err
	}
	return render(v, http.StatusOK, "overview", "Overview", out)
}

// fillOpen adds the open proposals: their number by priority, most urgent first, and the oldest.
func (v *visit) fillOpen(a identity.Access, out *overviewView) error {
	for i := len(proposal.Priorities) - 1; i >= 0; i-- {
		p := proposal.Priorities[i]
		counts, err := v.counts(a, proposal.Query{Priority: p})
		if err != nil {
			return err
		}
		n := counts[proposal.Open]
		out.Open += n
		out.Priorities = append(out.Priorities, openCount{p, n, link(v.base()+"/proposals", "priority", string(p))})
	}
	if out.Open == 0 {
		return nil
	}
	page, err := v.Proposals.List(v.r.Context(), a, proposal.Query{Sort: proposal.SortOldest, Limit: overviewOldest})
	out.Oldest = page.Items
	return err
}

// fillAsking adds the tasks that wait for an answer of the member, or for admins of any sender.
func (v *visit) fillAsking(out *overviewView) error {
	a, err := v.access(identity.ReadEvents)
	if err != nil {
		return err
	}
	list, err := v.Tasks.Asking(v.r.Context(), a, overviewAsking+1)
	if err != nil {
		return err
	}
	if out.MoreAsking = len(list) > overviewAsking; out.MoreAsking {
		list = list[:overviewAsking]
	}
	if out.Admin {
		out.AskingHref = link(v.base()+"/tasks", "state", string(task.InputRequired))
	}
	for i := range list {
		t := &list[i]
		row := askingRow{
			Task: *t, Sender: t.Sender.Ref(), Mine: t.Sender == v.member.Principal, Access: t.State == task.AuthRequired,
		}
		switch {
		case row.Mine:
			row.Href = v.taskPath(t.Agent, t.ID)
		case t.Org == v.member.Org:
			row.Href = v.orgTaskPath(t.UID)
		}
		out.Asking = append(out.Asking, row)
	}
	return nil
}

// month returns the figures of the last 30 days.
func (v *visit) month(a identity.Access) ([]figure, error) {
	pace, err := v.Proposals.Pace(v.r.Context(), a, v.Now().Add(-overviewMonth))
	if err != nil {
		return nil, err
	}
	// The lists of proposals are sorted by submission; the events of the decisions are what was counted.
	events := v.base() + "/events"
	all := link(events, "type", decidedFilter)
	decided := figure{"Decided", strconv.Itoa(pace.Decided), "approved or rejected", all}
	if pace.More {
		decided.Value += "+"
	}
	median := figure{"Time to decision", "–", "half are decided faster", all}
	accepted := figure{"Accepted", "–", "of the decided proposals", link(events, "type", string(event.ProposalApproved))}
	if pace.Decided > 0 {
		median.Value = elapsed(pace.Median)
		accepted.Value = fmt.Sprintf("%d %%", (200*pace.Approved+pace.Decided)/(2*pace.Decided)) // rounded
	}
	return []figure{decided, median, accepted}, nil
}
