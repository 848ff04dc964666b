package event

import (
	"context"
	"time"
)

// Query asks for events after a number.
type Query struct {
	Filter
	After int64 // the last number that the reader has seen; 0: start with the oldest that is kept
	Limit int
}

// Page is a part of the log.
type Page struct {
	Events []Event
	Last   int64 // all selected events up to this number are in the page
	Head   int64 // the last number of the log
	Kept   int64 // the first number that is kept; 0: not known
	// Missed reports that the reader cannot continue at Query.After: events after it were deleted,
	// or it is beyond the log, which was restored from a backup. The page starts with the oldest
	// event that is kept.
	Missed bool
}

// BackQuery asks for events before a number, newest first.
type BackQuery struct {
	Filter
	Before int64 // the smallest number that the reader has seen; 0: start with the newest event
	Limit  int
}

// BackPage is a part of the log, newest first.
type BackPage struct {
	Events []Event
	First  int64 // all selected events from this number up to BackQuery.Before are in the page
	Kept   int64 // the first number that is kept
}

// More reports whether there may be older events.
func (p *BackPage) More() bool { return p.First > p.Kept }

// Store keeps the logs.
type Store interface {
	// Page returns the oldest events that the query selects. It contains the events of every
	// change that was acknowledged before the call. It may end early, without any event, if the
	// query selects few events of a long log; then Last is below Head.
	Page(ctx context.Context, org string, q Query) (Page, error)
	// PageBack returns the newest events that the query selects. Like Page it contains the events of
	// every acknowledged change, and may end early; then First is above Kept.
	PageBack(ctx context.Context, org string, q BackQuery) (BackPage, error)
	// Head returns the last number of the log, which includes every change that was acknowledged
	// before the call; 0 if there is none.
	Head(ctx context.Context, org string) (int64, error)
	// FirstSince returns the number of the first kept event at or after a time; 0 if there is none.
	FirstSince(ctx context.Context, org string, since time.Time) (int64, error)
	// Expire deletes events older than a time, a limited number per call, and returns how many.
	Expire(ctx context.Context, before time.Time) (int, error)
	// IndexSubjects prepares the log of an org for queries by subject, a limited part per call, and
	// returns how many packs of events it added. Queries are correct without it.
	IndexSubjects(ctx context.Context, org string) (int, error)
}
