package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/task"
)

// MaxReports limits the reports of one exchange.
const MaxReports = 100

// LeaseReport is a report of an exchange.
type LeaseReport struct {
	Lease  string
	Report task.Report
	Err    error // the report is malformed: it is not carried out and gets this error as its result
}

// ReportResult is the result of one report: the same as that of Report.
type ReportResult struct {
	Progress Progress
	Err      error
}

// Exchanged is the response to an exchange.
type Exchanged struct {
	Results []ReportResult // one for each report, in the same order
	Claim   Claim
	Err     error // of the claim
}

// Exchange handles several reports of a worker and claims further tasks, if claim is not nil. Each
// report has its own result; none affects another. With reports it does not wait for tasks. The
// caller must call Return for assignments that do not reach the worker.
//
// After a lost response the same reports can be sent again: one that ended its lease before, with
// the same content, succeeds again.
func (s *Workers) Exchange(ctx context.Context, p Post, reports []LeaseReport, claim *ClaimRequest) (Exchanged, error) {
	if err := p.check(); err != nil {
		return Exchanged{}, err
	}
	if len(reports) > MaxReports {
		return Exchanged{}, errs.InvalidFields(
			errs.NewField("reports", fmt.Sprintf("must have at most %d entries", MaxReports)))
	}
	var out Exchanged
	if len(reports) == 0 {
		if claim != nil {
			out.Claim, out.Err = s.Claim(ctx, p, *claim)
		}
		return out, out.Err
	}
	ctx = context.WithoutCancel(ctx) // what has begun is completed; see Claim
	b := Batch{}
	if claim == nil {
		claim = &ClaimRequest{}
	} else {
		worker := Worker{Org: p.target.Org, Agent: p.target.ID, Name: claim.Worker, Capacity: claim.Capacity}
		if out.Err = s.beginClaim(ctx, worker, claim.Ack); out.Err == nil {
			out.Claim.Messages, out.Err = s.messages(ctx, worker.Org, worker.Agent)
		}
		if out.Err == nil {
			b = Batch{claim.Max, maxClaimTasks}
		}
	}
	err := s.exchange(ctx, p.target, reports, &out, b, s.decideClaim(claim.Worker, claim.Lease))
	out.Err = cmp.Or(out.Err, err)
	return out, nil
}

// exchange writes the reports and claims tasks. It sets the results of the reports and the
// assignments. The error is that of the claim.
func (s *Workers) exchange(
	ctx context.Context, to Target, reports []LeaseReport, out *Exchanged, b Batch, claim Decision,
) error {
	out.Results = make([]ReportResult, len(reports))
	updates := make([]Update, 0, len(reports))
	of := make([]int, 0, len(reports)) // the report of each update
	for i := range reports {
		u, err := s.updateOf(to.ID, &reports[i])
		if out.Results[i].Err = err; err == nil {
			updates, of = append(updates, u), append(of, i)
		}
	}
	changes, failed := s.queue.Exchange(ctx, to.Org, to.ID, updates, b, claim)
	for i := range updates {
		u, r, result := &updates[i], &reports[of[i]], &out.Results[of[i]]
		switch err := stale(u.Err); {
		case err == nil:
			result.Progress = s.progress(ctx, r.Lease, u.Change)
		case errors.Is(err, task.ErrStaleLease):
			result.Progress, result.Err = s.finishedBefore(ctx, to, u.UID, r)
		default:
			result.Err = err
		}
	}
	if failed != nil {
		return failed
	}
	out.Claim.Assignments, failed = s.assign(ctx, to.Org, to.ID, changes)
	return failed
}

func (s *Workers) updateOf(agent string, r *LeaseReport) (Update, error) {
	if r.Err != nil {
		return Update{}, r.Err
	}
	uid, ok := taskOf(r.Lease)
	if !ok {
		return Update{}, task.ErrStaleLease
	}
	decide, err := s.decideReport(agent, r.Lease, r.Report)
	return Update{UID: uid, Bytes: r.Report.Length(), Decide: decide}, err
}

// finishedBefore returns the result of a report whose lease is over. If the lease was ended by the
// same report, the response to which was lost, that is no error.
func (s *Workers) finishedBefore(ctx context.Context, to Target, uid string, r *LeaseReport) (Progress, error) {
	if !r.Report.EndsLease() {
		return Progress{}, task.ErrStaleLease
	}
	t, err := s.board.read.Row(ctx, to.Org, uid)
	if err != nil || t.Agent != to.ID {
		return Progress{}, stale(errors.Join(err, task.ErrStaleLease))
	}
	events, err := s.lately(ctx, &t, int64(len(r.Report.Artifacts)))
	if err != nil {
		return Progress{}, err
	}
	end, ok := r.Report.EndIn(events, r.Lease)
	if !ok {
		return Progress{}, task.ErrStaleLease
	}
	return Progress{State: t.State, Canceled: t.State == task.Canceled, Seen: end, Trace: t.Trace}, nil
}

// lately returns the latest events of a task: those of a report with so many artifacts, and the few
// that may have followed it.
func (s *Workers) lately(ctx context.Context, t *task.Task, artifacts int64) ([]task.Event, error) {
	if t.Size > maxFolded {
		account := budget.From(ctx)
		if err := account.Hold(ctx, 2*t.Size); err != nil {
			return nil, err
		}
		defer account.Drop(2 * t.Size)
	}
	const followed = 16
	var out []task.Event
	for after := max(0, t.Seq-artifacts-1-followed); after < t.Seq; after = out[len(out)-1].Seq {
		page, err := s.log.Events(ctx, t.Org, t.UID, after, 100)
		if err != nil || len(page) == 0 {
			return out, err
		}
		out = append(out, page...)
	}
	return out, nil
}
