package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/cursor"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/task"
)

// OwnRequest asks for a page of the caller's own tasks with one agent.
type OwnRequest struct {
	State        task.State // empty: any
	ContextID    string
	UpdatedAfter time.Time // or at that very time; zero: any time
	Token        string    // of the page before; empty: the first page
	Limit        int       // 0: OwnLimit
	History      bool      // with messages
	Artifacts    bool      // with artifacts
}

// OwnPage is a page of tasks, the one that changed last first.
type OwnPage struct {
	Tasks []task.Task
	Total int64  // of all pages
	Next  string // token of the next page; empty: there is none
	Limit int    // as it was applied
}

// OwnFilter is what a store is asked for.
type OwnFilter struct {
	task.Key            // whose, without an id
	HiddenOrg    string // see Call; empty: none
	State        task.State
	ContextID    string
	UpdatedAfter time.Time
	Before       *OwnPosition // continues a list behind this task
	Limit        int
	Bytes        int64 // of all statuses; the first task is always listed
}

// OwnPosition is where a task stands in the list.
type OwnPosition struct {
	UpdatedAt time.Time
	UID       string
}

// OwnLimit is the size of a page unless asked otherwise.
const OwnLimit = 50

// OwnRows is what a store finds.
type OwnRows struct {
	Tasks []task.Task
	Total int64
	More  bool  // further tasks follow, beyond the limit or the bytes
	Size  int64 // of all statuses, in bytes
}

// Own lists the caller's own tasks with an agent, the one that changed last first. A
// page that would be too large for one response is shorter than its limit.
func (s *Tasks) Own(ctx context.Context, c Call, r OwnRequest) (OwnPage, error) {
	f, err := r.filter(c.key(""))
	if err != nil {
		return OwnPage{}, err
	}
	f.Bytes = maxPageBytes
	if c.hidden != nil {
		f.HiddenOrg = c.hidden.Org
	}
	rows, err := s.board.read.Own(ctx, f)
	if err != nil {
		return OwnPage{}, err
	}
	if err := budget.From(ctx).Count(ctx, rows.Size); err != nil {
		return OwnPage{}, err
	}
	page := OwnPage{Tasks: rows.Tasks, Total: rows.Total, Limit: f.Limit}
	if r.History || r.Artifacts {
		n, err := s.fillPage(ctx, page.Tasks, task.Content{History: r.History, Artifacts: r.Artifacts})
		if err != nil {
			return OwnPage{}, err
		}
		page.Tasks, rows.More = page.Tasks[:n], rows.More || n < len(page.Tasks)
	}
	if rows.More && len(page.Tasks) > 0 {
		last := &page.Tasks[len(page.Tasks)-1]
		page.Next = ownPages.At().Time(last.UpdatedAt).Text(last.UID).String()
	}
	return page, nil
}

var ownPages = cursor.Of("own tasks")

// maxPageBytes bounds the statuses of one page.
const maxPageBytes = 4 << 20

// fillPage loads the content of tasks, as many as fit into the response, and returns
// how many did. The first one must fit.
func (s *Tasks) fillPage(ctx context.Context, tasks []task.Task, l task.Content) (int, error) {
	for i := range tasks {
		t := &tasks[i]
		at, uid := t.UpdatedAt, t.UID
		read := func(l task.Content) (task.Task, error) { return s.board.read.ByUID(ctx, t.Org, uid, l) }
		var whole task.Task
		var err error
		if i == 0 {
			whole, err = load(ctx, l, read)
		} else { // a shorter page now is better than a longer one later
			l.Admit = admit(ctx)
			whole, err = read(l)
		}
		switch {
		case errs.KindOf(err) == errs.NotFound:
			continue // deleted since; its status is still a true answer
		case i > 0 && (budget.IsBusy(err) || errors.Is(err, budget.ErrResponseTooLarge)):
			return i, nil
		case err != nil:
			return 0, err
		}
		*t = whole
		t.UpdatedAt = at // the page's order and its cursor stay those of the list
	}
	return len(tasks), nil
}

func (r *OwnRequest) filter(k task.Key) (OwnFilter, error) {
	f := OwnFilter{Key: k, State: r.State, ContextID: r.ContextID, UpdatedAfter: r.UpdatedAfter, Limit: r.Limit}
	var out []errs.Field
	if f.State != "" && !slices.Contains(task.States, f.State) {
		out = append(out, field("status", fmt.Sprintf("must be one of %v", task.States)))
	}
	out = append(out, task.CheckID("context_id", r.ContextID)...)
	if f.Limit == 0 {
		f.Limit = OwnLimit
	}
	if f.Limit < 1 || f.Limit > MaxLimit {
		out = append(out, field("limit", fmt.Sprintf("must be an integer from 1 to %d", MaxLimit)))
	}
	if r.Token != "" {
		token := ownPages.Read(r.Token)
		f.Before = &OwnPosition{token.Time(), token.Text()}
		if !token.Done() || !task.ValidUID(f.Before.UID) {
			out = append(out, field("cursor", "is not a token of this list"))
		}
	}
	if len(out) > 0 {
		return f, errs.InvalidFields(out...)
	}
	return f, nil
}
