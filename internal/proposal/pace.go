package proposal

import (
	"context"
	"slices"
	"time"

	"github.com/parley-dev/parley/internal/identity"
)

// Decided is an approval or a rejection.
type Decided struct {
	At          time.Time
	SubmittedAt time.Time // of the proposal
	Approved    bool
}

// Pace says how fast an org decides.
type Pace struct {
	Decided  int // approvals and rejections
	Approved int
	Median   time.Duration // from the submission to the decision; 0 without decisions
	More     bool          // there were more changes than MaxPace, and only the newest are counted
}

// MaxPace is how many changes of status are read to measure the pace.
const MaxPace = 1000

// Pace measures the decisions since a time.
func (s *Proposals) Pace(ctx context.Context, a identity.Access, since time.Time) (Pace, error) {
	if err := a.For(identity.ListProposals); err != nil {
		return Pace{}, err
	}
	list, more, err := s.store.Decisions(ctx, a.Org(), since, MaxPace)
	if err != nil {
		return Pace{}, err
	}
	return paceOf(list, more), nil
}

func paceOf(list []Decided, more bool) Pace {
	p := Pace{Decided: len(list), More: more}
	waits := make([]time.Duration, len(list))
	for i, d := range list {
		waits[i] = d.At.Sub(d.SubmittedAt)
		if d.Approved {
			p.Approved++
		}
	}
	if n := len(waits); n > 0 {
		slices.Sort(waits)
		p.Median = (waits[(n-1)/2] + waits[n/2]) / 2
	}
	return p
}
