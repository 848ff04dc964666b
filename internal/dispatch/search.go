package dispatch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// Search selects a page of the tasks of an org's agents, newest first. Unlike Filter, it reads a
// limited number of tasks, however many the org has.
type Search struct {
	Org    string
	Agent  string
	State  task.State
	Queued bool               // only tasks that wait for a worker, whatever their state
	Sender identity.Principal // zero: any
	From   time.Time          // only tasks that were sent then or later
	Until  time.Time          // only tasks that were sent earlier
	Before string             // Found.Next of the previous page
	Limit  int
}

// Found is a page of a search.
type Found struct {
	Tasks []task.Task // without messages and artifacts
	Next  string      // where the next page starts; empty: no older task matches
	// Partial means that the search has read MaxSearched tasks and found fewer than it may list.
	// Older tasks may match.
	Partial bool
}

// MaxSearched limits the tasks that a search reads to find those that match.
const MaxSearched = 5000

// ParseSender parses a sender: its ref, or its org and its ref as in "acme/user:ada".
func ParseSender(org, s string) (identity.Principal, error) {
	if other, ref, ok := strings.Cut(s, "/"); ok {
		org, s = other, ref
	}
	p, err := identity.ParseRef(org, s)
	if err != nil || !identity.ValidOrgID(org) {
		return p, errs.InvalidFields(errs.NewField("sender", `must be like "user:ada", or "acme/user:ada" for another org`))
	}
	return p, nil
}

// Validate reports every field that is malformed.
func (s *Search) Validate() error {
	var out []errs.Field
	if s.Agent != "" && !identity.ValidAgentID(s.Agent) {
		out = append(out, errs.NewField("agent", "is not the id of an agent"))
	}
	if s.State != "" && !slices.Contains(task.States, s.State) {
		out = append(out, errs.NewField("state", fmt.Sprintf("must be one of %v", task.States)))
	}
	if s.Before != "" && !task.ValidUID(s.Before) {
		out = append(out, errs.NewField("cursor", "is not a cursor of this list; open the list again"))
	}
	if len(out) > 0 {
		return errs.InvalidFields(out...)
	}
	return nil
}

// SearchOrgTasks searches the tasks of the org's agents, of all senders; for admins.
func (s *Tasks) SearchOrgTasks(ctx context.Context, a identity.Access, q Search) (Found, error) {
	if err := a.For(identity.ReadTasks); err != nil {
		return Found{}, err
	}
	if err := q.Validate(); err != nil {
		return Found{}, err
	}
	q.Org = a.Org()
	return s.board.read.Search(ctx, q)
}
