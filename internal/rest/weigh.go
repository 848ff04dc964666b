package rest

import (
	"context"

	"github.com/parley-dev/parley/internal/budget"
)

// weighed is a response that can hold megabytes of text, such as a page of records with long
// fields. Its size is counted before it is sent, because the client may read slowly.
type weighed interface {
	weight() int64 // approximate size in bytes
}

// take counts a response against the memory budget of the caller.
func take(ctx context.Context, out any) error {
	if w, ok := out.(weighed); ok {
		return budget.From(ctx).Count(ctx, w.weight())
	}
	return nil
}

func (o *listVotesOutput) weight() (n int64) {
	for i := range o.Body.Votes {
		n += int64(len(o.Body.Votes[i].Comment))
	}
	return n
}

func (o *listHistoryOutput) weight() (n int64) {
	for i := range o.Body.History {
		e := &o.Body.History[i]
		n += int64(len(e.Note) + len(e.Comment))
		for _, c := range e.Changes {
			n += int64(len(c.From) + len(c.To))
		}
	}
	return n
}

func (o *listFollowupsOutput) weight() (n int64) {
	for i := range o.Body.Followups {
		n += int64(len(o.Body.Followups[i].Description))
	}
	return n
}

func (o *listFrictionOutput) weight() (n int64) {
	for i := range o.Body.Friction {
		f := &o.Body.Friction[i]
		n += int64(len(f.Problem) + len(f.SuggestedFix))
	}
	return n
}

func (o *getFrictionOutput) weight() (n int64) {
	for i := range o.Body.Evidence {
		n += int64(len(o.Body.Evidence[i].Evidence))
	}
	return n
}
