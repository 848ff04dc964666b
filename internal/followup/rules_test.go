package followup

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/errs/errstest"
	"github.com/parley-dev/parley/internal/identity"
)

// The tables of this file are complete: every status, every state of a task.

var (
	madeAt    = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	changedAt = madeAt.Add(time.Hour)
)

// permitted is the status table. A status may follow itself, which changes nothing.
var permitted = map[Status][]Status{
	Open:       {InProgress, Done, Canceled},
	InProgress: {Open, Done, Canceled},
	Done:       {Open},
	Canceled:   {Open},
}

// taskStates are the states of A2A tasks, whether an agent works in each, and the status of an
// active follow-up in each.
var taskStates = map[string]struct {
	atWork  bool
	becomes Status
}{
	"submitted":      {true, Open},
	"working":        {true, InProgress},
	"input-required": {true, InProgress},
	"auth-required":  {true, InProgress},
	"completed":      {false, Done},
	"canceled":       {false, Open},
	"failed":         {false, Open},
	"rejected":       {false, Open},
	"unknown":        {false, Open},
	"":               {false, Open},
}

// made returns the follow-up that the tables start from.
func made(s Status) Followup {
	return Followup{
		Org: "acme", ID: "f-1", Title: "Retry", Description: "Repeat calls.", ProposalID: "prop-1", TextHash: "sha256:1",
		Status:   s,
		Assignee: "agent:scout", CreatedBy: "user:ann", CreatedAt: madeAt, UpdatedAt: madeAt, Version: 7,
		TaskUID: "uid-1", TaskState: "working",
	}
}

func ptr[T any](v T) *T { return &v }

func TestEveryStatusChange(t *testing.T) {
	t.Parallel()
	if len(permitted) != len(Statuses) {
		t.Fatalf("the table has %d statuses, want %d", len(permitted), len(Statuses))
	}
	for _, from := range Statuses {
		for _, to := range Statuses {
			name := fmt.Sprintf("from %s to %s", from, to)
			got, err := decideEdit(made(from), Edit{Status: &to}, changedAt)
			if from != to && !slices.Contains(permitted[from], to) {
				if kind := errs.KindOf(err); err == nil || kind != errs.Conflict {
					t.Errorf("%s: got %v, want a conflict", name, err)
					continue
				}
				var want []string
				for _, s := range permitted[from] {
					want = append(want, string(s))
				}
				if diff := cmp.Diff(want, errs.As(err).Allowed); diff != "" {
					t.Errorf("%s: the allowed statuses (-want +got)\n%s", name, diff)
				}
				continue
			}
			want := made(to)
			want.UpdatedAt = changedAt
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got)\n%s", name, err, diff)
			}
		}
	}
}

// Every set of fields that one edit can have.
func TestEverySetOfEditedFields(t *testing.T) {
	t.Parallel()
	edits := []struct {
		ask  func(*Edit)
		done func(*Followup)
	}{
		{func(e *Edit) { e.Title = ptr("t") }, func(f *Followup) { f.Title = "t" }},
		{func(e *Edit) { e.Description = ptr("") }, func(f *Followup) { f.Description = "" }},
		{func(e *Edit) { e.Status = ptr(Done) }, func(f *Followup) { f.Status = Done }},
		{
			func(e *Edit) { e.Assignee = ptr("user:bob") },
			func(f *Followup) { f.Assignee, f.TaskUID, f.TaskState = "user:bob", "", "" },
		},
		{func(e *Edit) { e.IfVersion = ptr(int64(7)) }, func(*Followup) {}},
	}
	for set := range 1 << len(edits) {
		var e Edit
		want := made(InProgress)
		want.UpdatedAt = changedAt
		for i, f := range edits {
			if set&(1<<i) != 0 {
				f.ask(&e)
				f.done(&want)
			}
		}
		got, err := decideEdit(made(InProgress), e, changedAt)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("set %05b: %v (-want +got)\n%s", set, err, diff)
		}
	}
}

// A follow-up keeps its task until it gets another assignee.
func TestAnotherAssigneeHasNoTaskYet(t *testing.T) {
	t.Parallel()
	for assignee, uid := range map[string]string{
		"agent:scout": "uid-1", "agent:other": "", "user:scout": "", "user:ann": "", "": "",
	} {
		got, err := decideEdit(made(InProgress), Edit{Assignee: &assignee}, changedAt)
		if err != nil || got.Assignee != assignee || got.TaskUID != uid || (got.TaskState == "") != (uid == "") {
			t.Errorf("assigned to %q: got %q with the task %q (%s), %v; want the task %q",
				assignee, got.Assignee, got.TaskUID, got.TaskState, err, uid)
		}
	}
}

func TestVersionsThatAChangeWasMadeOn(t *testing.T) {
	t.Parallel()
	for version, want := range map[int64]string{6: "request.stale", 7: "", 8: "request.stale", 0: "request.stale"} {
		// A stale version is reported before other errors.
		_, err := decideEdit(made(Done), Edit{IfVersion: &version, Status: ptr(Open)}, changedAt)
		if got := errstest.Code(err); got != want {
			t.Errorf("version %d: got %q, want %q", version, got, want)
		}
		_, err = decideEdit(made(Done), Edit{IfVersion: &version, Status: ptr(Canceled)}, changedAt)
		if got := errstest.Code(err); want != "" && got != want {
			t.Errorf("version %d and a wrong status: got %q, want %q", version, got, want)
		}
	}
}

func TestWhatTheStateOfATaskMakesOfAFollowup(t *testing.T) {
	t.Parallel()
	for _, from := range Statuses {
		for state, s := range taskStates {
			want := made(from)
			want.TaskUID, want.TaskState, want.UpdatedAt = "uid-2", state, changedAt
			if from != Done && from != Canceled { // people ended these
				want.Status = s.becomes
			}
			if diff := cmp.Diff(want, made(from).Mirror("uid-2", state, changedAt)); diff != "" {
				t.Errorf("%s, whose task is %q (-want +got)\n%s", from, state, diff)
			}
		}
	}
}

func TestWhenAnAgentIsAtWork(t *testing.T) {
	t.Parallel()
	for state, s := range taskStates {
		for _, uid := range []string{"", "uid-1"} {
			f := Followup{TaskUID: uid, TaskState: state}
			if got, want := f.atWork(), uid != "" && s.atWork; got != want {
				t.Errorf("task %q that is %q: got %v, want %v", uid, state, got, want)
			}
		}
	}
}

func TestWhenAnAgentIsSentATask(t *testing.T) {
	t.Parallel()
	for _, status := range Statuses {
		for state, s := range taskStates {
			for assignee, same := range map[string]bool{
				"agent:scout": true, "agent:other": false, "user:scout": false,
				"": false,
			} {
				name := fmt.Sprintf("%s, assigned to %q, whose task is %q", status, assignee, state)
				f := made(status)
				f.Assignee, f.TaskState = assignee, state
				got, err := decideSend(f, "scout")
				if status == Done || status == Canceled {
					if err == nil || errs.KindOf(err) != errs.Conflict || !slices.Equal(errs.As(err).Allowed, []string{"open"}) {
						t.Errorf("%s: got %v, want a conflict that allows open", name, err)
					}
					continue
				}
				if want := !same || !s.atWork; got != want || err != nil {
					t.Errorf("%s: got %v, %v; want %v", name, got, err, want)
				}
			}
		}
	}
}

func TestWhenATaskIsRecalled(t *testing.T) {
	t.Parallel()
	for state, s := range taskStates {
		for _, status := range Statuses {
			for uid, same := range map[string]bool{"uid-1": true, "uid-2": false, "": false} {
				before, after := made(InProgress), made(status)
				before.TaskState, after.TaskUID = state, uid
				got := decideRecall(before, after)
				if want := s.atWork && (!same || status == Done || status == Canceled); got != want {
					t.Errorf("task %q that is %q, of a follow-up that is %s with the task %q now: got %v, want %v",
						before.TaskUID, state, status, uid, got, want)
				}
			}
		}
	}
	if before, after := (Followup{TaskState: "working"}), made(Done); decideRecall(before, after) {
		t.Error("a follow-up without a task: got a recall, want none")
	}
}

// Assigning a follow-up to an agent calls the agent, so it needs the scope, and the agent
// restriction of the key applies.
func TestWhoMayAssignWhom(t *testing.T) {
	t.Parallel()
	const (
		ok      = ""
		scope   = "auth.scope_missing"
		invalid = "request.invalid"
	)
	for _, c := range []struct {
		scopes string
		want   map[string]string
	}{
		{
			"svc:tasks:write",
			map[string]string{"user:bob": ok, "agent:scout": scope, "agent:other": scope, "service:crm": invalid},
		},
		{"svc:tasks:write svc:admin:admin", map[string]string{"user:bob": ok, "agent:scout": scope, "service:crm": invalid}},
		{"svc:tasks:write svc:a2a:serve agent:scout", map[string]string{"user:bob": ok, "agent:scout": scope}},
		{
			"svc:tasks:write svc:a2a:write",
			map[string]string{
				"user:bob": ok, "agent:scout": ok, "agent:other": ok, "service:crm": invalid, "bob": invalid,
				"user:": invalid, "user:B": invalid,
			},
		},
		{
			"svc:tasks:write svc:a2a:write agent:scout",
			map[string]string{"user:bob": ok, "agent:scout": ok, "agent:other": scope, "service:crm": invalid},
		},
		{"svc:tasks:write svc:a2a:write agent:*", map[string]string{"user:bob": ok, "agent:scout": ok, "agent:other": ok}},
	} {
		caller := &identity.Caller{
			Principal: identity.Principal{Org: "acme", Kind: identity.User, ID: "ann"}, Scopes: identity.SplitScopes(c.scopes),
		}
		a, err := identity.Authorize(caller, "acme", identity.ChangeFollowup)
		if err != nil {
			t.Fatal(err)
		}
		for ref, want := range c.want {
			p, err := decideAssignee(a, ref)
			if got := errstest.Code(err); got != want {
				t.Errorf("%s with %s: got %q, want %q", ref, c.scopes, got, want)
			}
			if want == ok && (p.Org != "acme" || p.Ref() != ref) {
				t.Errorf("%s with %s: got %s of %s, want it of acme", ref, c.scopes, p.Ref(), p.Org)
			}
		}
	}
}

func TestEveryFieldOfAFollowup(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("é", n) }
	for _, f := range []struct {
		name      string
		ask       func(*Edit, string)
		good, bad map[string]string
	}{
		{
			"title", func(e *Edit, s string) { e.Title = &s },
			map[string]string{"one letter": "t", "as long as can be": long(MaxTitle), "a tab": "a\tb", "emoji": "👩\u200d💻"},
			map[string]string{
				"nothing": "", "blanks": " \t", "too long": long(MaxTitle + 1), "two lines": "a\nb", "not UTF-8": "\xff",
				"NUL":    "a\x00",
				"escape": "a\x1b", "delete": "a\x7f", "C1 control": "a\u009b", "override": "a\u202eb", "nothing to see": "\u200b",
			},
		},
		{
			"description", func(e *Edit, s string) { e.Description = &s },
			map[string]string{"nothing": "", "lines": "a\r\n\tb", "as long as can be": long(MaxDescription)},
			map[string]string{
				"too long": long(MaxDescription + 1), "not UTF-8": "\xff", "NUL": "a\x00", "escape": "a\x1b",
				"C1 control": "a\u009b",
			},
		},
		{
			"status", func(e *Edit, s string) { e.Status = ptr(Status(s)) },
			map[string]string{"open": "open", "in progress": "in_progress", "done": "done", "canceled": "canceled"},
			map[string]string{
				"nothing": "", "all": "all", "upper case": "Open", "British": "cancelled", "of a proposal": "approved",
			},
		},
		{
			"assignee", func(e *Edit, s string) { e.Assignee = &s },
			map[string]string{"nobody": "", "a user": "user:bob", "an agent": "agent:scout"},
			map[string]string{
				"a service": "service:crm", "no kind": "bob", "no id": "user:", "another kind": "robot:x",
				"upper case": "user:Bob",
			},
		},
	} {
		check := func(what, value string, want []string) {
			var e Edit
			f.ask(&e, value)
			if diff := cmp.Diff(want, errstest.Fields(e.Validate())); diff != "" {
				t.Errorf("%s, %s: broken fields (-want +got)\n%s", f.name, what, diff)
			}
			if f.name == "status" {
				return // a new one is open
			}
			c := Creation{Title: "t"}
			switch f.name {
			case "title":
				c.Title = value
			case "description":
				c.Description = value
			case "assignee":
				c.Assignee = value
			}
			if diff := cmp.Diff(want, errstest.Fields(c.Validate())); diff != "" {
				t.Errorf("%s of a new one, %s: broken fields (-want +got)\n%s", f.name, what, diff)
			}
		}
		for what, value := range f.good {
			check(what, value, nil)
		}
		for what, value := range f.bad {
			check(what, value, []string{f.name})
		}
	}
	all := Edit{Title: ptr(""), Description: ptr("\x00"), Status: ptr(Status("x")), Assignee: ptr("x")}
	if diff := cmp.Diff([]string{"title", "description", "status", "assignee"}, errstest.Fields(all.Validate())); diff != "" {
		t.Errorf("all at once: broken fields (-want +got)\n%s", diff)
	}
	if err := (&Edit{}).Validate(); err != nil {
		t.Errorf("nothing at all: got %v, want no error", err)
	}
}

func TestEveryFilterOfAQuery(t *testing.T) {
	t.Parallel()
	const id = "prop-00000000000000000000000001"
	for _, c := range []struct {
		name string
		q    Query
		want Filter
		bad  []string
	}{
		{"nothing", Query{}, Filter{Limit: 20}, nil},
		{"every status", Query{Status: "all"}, Filter{Limit: 20}, nil},
		{"open", Query{Status: Open}, Filter{Limit: 20, Status: Open}, nil},
		{"in progress", Query{Status: InProgress}, Filter{Limit: 20, Status: InProgress}, nil},
		{"done", Query{Status: Done}, Filter{Limit: 20, Status: Done}, nil},
		{"canceled", Query{Status: Canceled}, Filter{Limit: 20, Status: Canceled}, nil},
		{"an unknown status", Query{Status: "closed"}, Filter{}, []string{"status"}},
		{"every assignee", Query{Assignee: "all"}, Filter{Limit: 20}, nil},
		{"no assignee", Query{Assignee: "none"}, Filter{Limit: 20, Unassigned: true}, nil},
		{"a user", Query{Assignee: "user:bob"}, Filter{Limit: 20, Assignee: "user:bob"}, nil},
		{"an agent", Query{Assignee: "agent:scout"}, Filter{Limit: 20, Assignee: "agent:scout"}, nil},
		{"no ref", Query{Assignee: "bob"}, Filter{}, []string{"assignee"}},
		{"a proposal", Query{ProposalID: id}, Filter{Limit: 20, ProposalID: id}, nil},
		{"a proposal in upper case", Query{ProposalID: strings.ToUpper(id)}, Filter{Limit: 20, ProposalID: id}, nil},
		{"no id", Query{ProposalID: "prop_1"}, Filter{}, []string{"proposal_id"}},
		{"a long id", Query{ProposalID: strings.Repeat("a", 65)}, Filter{}, []string{"proposal_id"}},
		{"the second page", Query{Page: 2}, Filter{Limit: 20, Offset: 20}, nil},
		{"the third of one each", Query{Page: 3, Limit: 1}, Filter{Limit: 1, Offset: 2}, nil},
		{"as many as can be", Query{Page: 2, Limit: MaxLimit}, Filter{Limit: 100, Offset: 100}, nil},
		{"too many", Query{Limit: MaxLimit + 1}, Filter{}, []string{"limit"}},
		{"fewer than none", Query{Limit: -1}, Filter{}, []string{"limit"}},
		{"a page before the first", Query{Page: -1}, Filter{}, []string{"page"}},
		{"the last page that can be", Query{Page: 1 << 56, Limit: 100}, Filter{Limit: 100, Offset: (1<<56 - 1) * 100}, nil},
		{"a page behind it", Query{Page: 1<<56 + 1}, Filter{}, []string{"page"}},
		{"the largest number", Query{Page: math.MaxInt64}, Filter{}, []string{"page"}},
		{
			"everything wrong",
			Query{Status: "x", Assignee: "x", ProposalID: "?", Limit: -1, Page: -1},
			Filter{},
			[]string{"status", "assignee", "proposal_id", "limit", "page"},
		},
	} {
		got, err := c.q.check("acme")
		if diff := cmp.Diff(c.bad, errstest.Fields(err)); diff != "" {
			t.Errorf("%s: broken parameters (-want +got)\n%s", c.name, diff)
		}
		if c.bad == nil {
			c.want.Org = "acme"
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, diff)
		}
	}
}

func TestIDsOfFollowups(t *testing.T) {
	t.Parallel()
	const good = "01k5x8r2m4v7c9w3q6z1t0h8ye"
	for id, want := range map[string]bool{
		"fup-" + good: true, "task-" + good: false, good: false, "fup-": false, "": false, "fup-" + good[1:]: false,
		"fup-" + good + "0": false, "fup-" + good[1:] + "A": false, "fup-" + good[1:] + "-": false, "FUP-" + good: false,
	} {
		if got := ValidID(id); got != want {
			t.Errorf("%q: got %v, want %v", id, got, want)
		}
	}
}

// A new task takes over a follow-up from the task that it replaces, but not from another active
// one.
func TestWhichTaskTakesAFollowUpOver(t *testing.T) {
	t.Parallel()
	for _, status := range Statuses {
		for _, state := range []string{
			"", "submitted", "working", "input-required", "auth-required", "completed", "failed", "canceled", "rejected",
		} {
			for _, replaces := range []string{"", "t-1", "t-2"} {
				f := Followup{Status: status, Assignee: "user:ann"}
				if state != "" {
					f.TaskUID, f.TaskState = "t-1", state
				}
				live := slices.Contains([]string{"submitted", "working", "input-required", "auth-required"}, state)
				want := ""
				switch {
				case status == Done || status == Canceled:
					want = "followup.transition_not_allowed"
				case live && replaces != "t-1":
					want = "followup.taken_over"
				}
				got, err := f.TakeOver("scout", "t-9", "submitted", replaces, time.UnixMicro(5))
				if code := errstest.Code(err); code != want {
					t.Errorf("%s, its task %s, replacing %q: got %q, want %q", status, state, replaces, code, want)
				}
				if err == nil && (got.TaskUID != "t-9" || got.TaskState != "submitted" || got.Assignee != "agent:scout") {
					t.Errorf("%s, its task %s, replacing %q: got %+v", status, state, replaces, got)
				}
			}
		}
	}
}
