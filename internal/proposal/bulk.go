package proposal

import (
	"context"
	"sync"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/text"
)

const (
	// MaxBulk is how many proposals one command decides at the most.
	MaxBulk = 100
	// bulkAtOnce is how many of them are decided at the same time.
	bulkAtOnce = 8
)

// Bulk asks for one decision on several proposals.
type Bulk struct {
	Status Status
	Note   string
	Items  []BulkItem
	Once   *idempotency.Key
}

// BulkItem is one of the proposals, with the version of the text that was decided on.
type BulkItem struct {
	ID          string
	TextVersion int64
}

// BulkResult is what became of one of them. Exactly one of Outcome and Err says something.
type BulkResult struct {
	ID      string
	Outcome Outcome
	Err     error
}

// Validate is to ResolveAll what Submission.Validate is to Submit.
func (b *Bulk) Validate() error {
	var c check
	r := Resolution{Status: b.Status, Note: b.Note}
	if err := r.Validate(); err != nil {
		c.fields = errs.As(err).Fields
	}
	if b.Status == Rejected && text.Blank(b.Note) {
		c.fields = append(c.fields, errNoReason)
	}
	switch n := len(b.Items); {
	case n == 0:
		c.add("items", "is required and must not be empty")
	case n > MaxBulk:
		c.add("items", "must have at most %d items; it has %d", MaxBulk, n)
		return c.err()
	}
	seen := map[string]bool{}
	for i, it := range b.Items {
		switch {
		case !ValidID(it.ID):
			c.addAt(errs.At("items", i, "id"), "is no id of a proposal")
		case seen[it.ID]:
			c.addAt(errs.At("items", i, "id"), "is there twice")
		}
		if seen[it.ID] = true; !validTextVersion(it.TextVersion) {
			c.addAt(errs.At("items", i, "text_version"), "%s", badTextVersion)
		}
	}
	return c.err()
}

// ResolveAll decides several proposals alike, each as Resolve does, on its own: what cannot
// be done does not keep the others from being done. The results are in the order of the
// items.
func (s *Proposals) ResolveAll(ctx context.Context, a identity.Access, cmd Bulk) ([]BulkResult, error) {
	if err := a.For(identity.ResolveProposal); err != nil {
		return nil, err
	}
	if err := cmd.Validate(); err != nil {
		return nil, err
	}
	results := make([]BulkResult, len(cmd.Items))
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(bulkAtOnce, len(cmd.Items)) {
		wg.Go(func() {
			for i := range next {
				it := &cmd.Items[i]
				out, err := s.Resolve(ctx, a, it.ID, Resolution{
					Status: cmd.Status, Note: cmd.Note, IfTextVersion: &it.TextVersion, Once: cmd.Once.Of(it.ID),
				})
				results[i] = BulkResult{ID: it.ID, Outcome: out, Err: err}
			}
		})
	}
	for i := range cmd.Items {
		next <- i
	}
	close(next)
	wg.Wait()
	return results, nil
}
