package task

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

// OwnRequest asks for a page of the caller's own tasks with one agent.
type OwnRequest struct {
	State        State // empty: any
	ContextID    string
	UpdatedAfter time.Time // zero: any time
	Token        string    // of the page before; empty: the first page
	Limit        int       // 0: OwnLimit
	History      bool      // with messages
	Artifacts    bool      // with artifacts
}

// OwnPage is a page of tasks, the one that changed last first.
type OwnPage struct {
	Tasks []Task
	Total int64  // of all pages
	Next  string // token of the next page; empty: there is none
	Limit int    // as it was applied
}

// OwnFilter is what a store is asked for.
type OwnFilter struct {
	Key          // whose, without an id
	State        State
	ContextID    string
	UpdatedAfter time.Time
	Before       *OwnPosition // continues a list behind this task
	Limit        int
}

// OwnPosition is where a task stands in the list.
type OwnPosition struct {
	UpdatedAt time.Time
	UID       string
}

// OwnLimit is the size of a page unless asked otherwise.
const OwnLimit = 50

// Own lists the caller's own tasks with an agent, the one that changed last first.
func (s *Tasks) Own(ctx context.Context, c Call, r OwnRequest) (OwnPage, error) {
	f, err := r.filter(s.key(c, ""))
	if err != nil {
		return OwnPage{}, err
	}
	page := OwnPage{Limit: f.Limit}
	f.Limit++
	if page.Tasks, page.Total, err = s.Store.OwnTasks(ctx, f); err != nil {
		return OwnPage{}, err
	}
	if len(page.Tasks) > page.Limit {
		page.Tasks = page.Tasks[:page.Limit]
		last := &page.Tasks[page.Limit-1]
		page.Next = strconv.FormatInt(last.UpdatedAt.UnixMicro(), 36) + "." + last.UID
	}
	for i := range page.Tasks {
		t := &page.Tasks[i]
		// A status may have a message, which is in the log.
		whole, err := s.Store.TaskByUID(ctx, t.Org, t.UID)
		switch {
		case errs.KindOf(err) == errs.NotFound:
			continue // swept meanwhile
		case err != nil:
			return OwnPage{}, err
		}
		if *t = whole; !r.History {
			t.History = nil
		}
		if !r.Artifacts {
			t.Artifacts = nil
		}
	}
	return page, nil
}

func (r *OwnRequest) filter(k Key) (OwnFilter, error) {
	f := OwnFilter{Key: k, State: r.State, ContextID: r.ContextID, UpdatedAfter: r.UpdatedAfter, Limit: r.Limit}
	var out []errs.Field
	if f.State != "" && !slices.Contains(States, f.State) {
		out = append(out, field("/status", fmt.Sprintf("must be one of %v", States)))
	}
	out = append(out, checkID("/contextId", r.ContextID)...)
	if f.Limit == 0 {
		f.Limit = OwnLimit
	}
	if f.Limit < 1 || f.Limit > MaxLimit {
		out = append(out, field("/pageSize", fmt.Sprintf("must be an integer from 1 to %d", MaxLimit)))
	}
	if r.Token != "" {
		at, uid, ok := strings.Cut(r.Token, ".")
		us, err := strconv.ParseInt(at, 36, 64)
		if !ok || err != nil || us < 0 || !ValidUID(uid) {
			out = append(out, field("/pageToken", "is not a token of this list; use the nextPageToken of the page before"))
		}
		f.Before = &OwnPosition{time.UnixMicro(us).UTC(), uid}
	}
	if len(out) > 0 {
		return f, errs.InvalidFields(out...)
	}
	return f, nil
}
