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

// OwnRequest selects a page of the tasks that the caller sent to one agent.
type OwnRequest struct {
	State        task.State // empty: any
	ContextID    string
	UpdatedAfter time.Time // inclusive; zero: any time
	Cursor       string    // OwnPage.Next of the previous page; empty: the first page
	Limit        int       // 0: OwnLimit
	History      bool      // with messages
	Artifacts    bool      // with artifacts
}

// OwnPage is a page of tasks, the most recently changed first.
type OwnPage struct {
	Tasks []task.Task
	Total int64  // of all pages
	Next  string // cursor of the next page; empty: this is the last
	Limit int    // the limit that was applied
}

// OwnFilter is an OwnRequest as the store gets it.
type OwnFilter struct {
	task.Key            // without an id
	HiddenOrg    string // org of the hidden agent, see Call; may be empty
	State        task.State
	ContextID    string
	UpdatedAfter time.Time
	Before       *OwnPosition // the last task of the previous page
	Limit        int
	Bytes        int64 // limit for all statuses; the first task is always listed
}

// OwnPosition is the position of a task in the list.
type OwnPosition struct {
	UpdatedAt time.Time
	UID       string
}

// OwnLimit is the default size of a page.
const OwnLimit = 50

// OwnRows is the result of TaskReader.Own.
type OwnRows struct {
	Tasks []task.Task
	Total int64
	More  bool  // further tasks follow
	Size  int64 // of all statuses, in bytes
}

// Own lists the tasks that the caller sent to an agent, the most recently changed first. A
// page that would be too large for one response is shorter than its limit.
func (s *Tasks) Own(ctx context.Context, c Call, r OwnRequest) (OwnPage, error) {
	if err := c.check(); err != nil {
		return OwnPage{}, err
	}
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

// maxPageBytes limits the size of the statuses of one page.
const maxPageBytes = 4 << 20

// fillPage loads the content of as many tasks as fit into the response and returns their
// number. The first one must fit.
func (s *Tasks) fillPage(ctx context.Context, tasks []task.Task, l task.Content) (int, error) {
	for i := range tasks {
		t := &tasks[i]
		at, uid := t.UpdatedAt, t.UID
		read := func(l task.Content) (task.Task, error) { return s.board.read.ByUID(ctx, t.Org, uid, l) }
		var whole task.Task
		var err error
		if i == 0 {
			whole, err = load(ctx, l, read)
		} else { // a shorter page is better than waiting
			l.Admit = admit(ctx)
			whole, err = read(l)
		}
		switch {
		case errs.KindOf(err) == errs.NotFound:
			continue // deleted meanwhile; the status was true when it was read
		case i > 0 && (budget.IsBusy(err) || errors.Is(err, budget.ErrResponseTooLarge)):
			return i, nil
		case err != nil:
			return 0, err
		}
		*t = whole
		t.UpdatedAt = at // keeps the order and the cursor of the page consistent
	}
	return len(tasks), nil
}

func (r *OwnRequest) filter(k task.Key) (OwnFilter, error) {
	f := OwnFilter{Key: k, State: r.State, ContextID: r.ContextID, UpdatedAfter: r.UpdatedAfter, Limit: r.Limit}
	var out []errs.Field
	if f.State != "" && !slices.Contains(task.States, f.State) {
		out = append(out, errs.NewField("state", fmt.Sprintf("must be one of %v", task.States)))
	}
	out = append(out, task.CheckID("context_id", r.ContextID)...)
	if f.Limit == 0 {
		f.Limit = OwnLimit
	}
	if f.Limit < 1 || f.Limit > MaxLimit {
		out = append(out, errs.NewField("limit", fmt.Sprintf("must be an integer from 1 to %d", MaxLimit)))
	}
	if r.Cursor != "" {
		at := ownPages.Read(r.Cursor)
		f.Before = &OwnPosition{at.Time(), at.Text()}
		if !at.Done() || !task.ValidUID(f.Before.UID) {
			out = append(out, errs.NewField("cursor", "is not a cursor of this list"))
		}
	}
	if len(out) > 0 {
		return f, errs.InvalidFields(out...)
	}
	return f, nil
}
