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
	// MaxBulk limits how many proposals one command decides.
	MaxBulk = 100
	// bulkAtOnce is how many of them are decided concurrently.
	bulkAtOnce = 8
)

// Bulk is one decision on several proposals.
type Bulk struct {
	Status Status
	Note   string
	Items  []BulkItem
	Once   *idempotency.Key
}

// BulkItem is one of the proposals, with the version of the text that the admin read.
type BulkItem struct {
	ID          string
	TextVersion int64
}

// BulkResult is the result for one proposal: either Outcome or Err.
type BulkResult struct {
	ID      string
	Outcome Outcome
	Err     error
}

// Validate reports every field that breaks a rule; see Submission.Validate.
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
			c.addAt(errs.At("items", i, "id"), "is not the id of a proposal")
		case seen[it.ID]:
			c.addAt(errs.At("items", i, "id"), "appears twice")
		}
		if seen[it.ID] = true; !validTextVersion(it.TextVersion) {
			c.addAt(errs.At("items", i, "text_version"), "%s", badTextVersion)
		}
	}
	return c.err()
}

// ResolveAll makes the same decision on several proposals. Each is resolved independently, so
// that a failure does not affect the others. The results are in the order of the items.
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
