package dispatch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/task"
)

// Progress is the response to a report.
type Progress struct {
	State     task.State
	Canceled  bool
	ExpiresAt time.Time      // of the lease; zero if it has ended
	Turns     []task.Message // from the sender, since the claim or the last report
	Seen      int64          // the last event that was delivered to the worker
	More      bool           // Turns is incomplete; the next report returns the rest
	Trace     string         // of the task
}

// Report handles a worker's report. If the lease has ended, it changes nothing and the error is
// Conflict, unless the task was canceled under this lease: then Progress.Canceled is set.
func (s *Workers) Report(ctx context.Context, p Post, token string, r task.Report) (Progress, error) {
	if err := p.check(); err != nil {
		return Progress{}, err
	}
	uid, ok := taskOf(token)
	if !ok {
		return Progress{}, task.ErrStaleLease
	}
	return s.report(ctx, p.target.Org, p.target.ID, uid, token, r)
}

func (s *Workers) report(ctx context.Context, org, agent, uid, token string, r task.Report) (Progress, error) {
	decide, err := s.decideReport(agent, token, r)
	if err != nil {
		return Progress{}, err
	}
	once := idempotency.From(ctx)
	write := s.board.write.Update
	if once != nil {
		write = s.board.write.UpdateOnce
	}
	change, err := write(ctx, org, uid, r.Length(), decide)
	switch {
	case err != nil:
		return Progress{}, stale(err)
	case once.Replayed():
		return s.repeated(ctx, org, uid, token, change.Reported)
	}
	return s.progress(ctx, token, change), nil
}

// decideReport checks a report and returns the decision on it.
func (s *Workers) decideReport(agent, token string, r task.Report) (Decision, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	r.Artifacts = s.named(r.Artifacts)
	now := s.board.now()
	return func(cur task.Current) (task.Change, error) {
		if cur.Task.Agent != agent {
			return task.Change{}, errs.ErrNotFound
		}
		change, err := task.DecideReport(cur.Task, token, r, s.board.limits, now, cur.Clock)
		seq := change.Task.Seq
		change.Reported = task.Reported{Given: r.Known(&cur.Task), Before: seq - int64(len(change.Events)), Seq: seq}
		return change, err
	}, nil
}

// progress publishes a stored report and returns the response. If the turns cannot be read,
// that is no error, because the report is stored: they stay undelivered and More is set.
func (s *Workers) progress(ctx context.Context, token string, change task.Change) Progress {
	s.board.publish(change)
	t := &change.Task
	out := Progress{
		State: t.State, Canceled: t.State == task.Canceled, ExpiresAt: t.Lease.ExpiresAt, Seen: t.Seq, Trace: t.Trace,
	}
	if !s.addTurns(ctx, &out, t, change.Reported) {
		s.undeliver(ctx, t, token, out.Seen)
	}
	return out
}

// addTurns adds the sender's messages from before the report that the worker does not have. It
// returns false if not all of them could be read; then More is set.
func (s *Workers) addTurns(ctx context.Context, p *Progress, t *task.Task, r task.Reported) bool {
	if r.Given >= r.Before {
		return true
	}
	turns, read, err := s.turns(ctx, t, r.Given, r.Before)
	p.Turns = turns
	if err != nil {
		p.More, p.Seen = true, read
	}
	return err == nil
}

// repeated returns the response to a report that was stored before under its idempotency key:
// the same messages as the first response, and the current state. It changes nothing, because
// later reports may have delivered more.
func (s *Workers) repeated(ctx context.Context, org, uid, token string, r task.Reported) (Progress, error) {
	t, err := s.board.read.Row(ctx, org, uid)
	if err != nil {
		return Progress{}, stale(err)
	}
	out := Progress{State: t.State, Canceled: t.State == task.Canceled, Seen: r.Seq}
	if t.Lease.Token == token {
		out.ExpiresAt = t.Lease.ExpiresAt
	}
	s.addTurns(ctx, &out, &t, r)
	return out, nil
}

// undeliver records that the turns after an event were not delivered to the worker.
func (s *Workers) undeliver(ctx context.Context, t *task.Task, token string, seq int64) {
	unseen := func(cur task.Current) (task.Change, error) { return task.DecideUnseen(cur.Task, token, seq) }
	_, err := s.board.write.Update(context.WithoutCancel(ctx), t.Org, t.UID, 0, unseen)
	if err != nil {
		s.board.onError(fmt.Errorf("messages of task %s may not reach its worker: %w", t.UID, err))
	}
}

// stale turns NotFound into ErrStaleLease, which is what it means to a worker.
func stale(err error) error {
	if errs.KindOf(err) == errs.NotFound {
		return task.ErrStaleLease
	}
	return err
}

// turns reads the sender's messages after one event and up to another. read is the last event
// that was read. Memory is taken once, before anything is read: reports that took it in steps
// could wait for each other.
func (s *Workers) turns(
	ctx context.Context, t *task.Task, after, upTo int64,
) (out []task.Message, read int64, err error) {
	account, held := budget.From(ctx), int64(0)
	if t.Size > maxFolded {
		held = 2 * t.Size
	}
	if err := account.Hold(ctx, held); err != nil {
		return nil, after, err
	}
	defer func() { account.Drop(max(0, held)) }()
	for after < upTo {
		events, err := s.log.Events(ctx, t.Org, t.UID, after, 100)
		if err != nil || len(events) == 0 {
			return out, after, err
		}
		for _, e := range events {
			if e.Kind == task.TurnEvent && e.Seq <= upTo {
				out = append(out, *e.Message)
				held -= 2 * e.Size() // this much stays in use
			}
			after = e.Seq
		}
	}
	return out, after, nil
}

// Return puts a claimed task back into the queue at once.
func (s *Workers) Return(ctx context.Context, p Post, token string) error {
	if err := p.check(); err != nil {
		return err
	}
	return s.giveBack(ctx, p.target.Org, p.target.ID, token, 0)
}

// giveBack puts a claimed task back into the queue after a time.
func (s *Workers) giveBack(ctx context.Context, org, agent, token string, after time.Duration) error {
	uid, ok := taskOf(token)
	if !ok {
		return task.ErrStaleLease
	}
	now := s.board.now()
	change, err := s.board.write.Update(ctx, org, uid, 0, func(cur task.Current) (task.Change, error) {
		if cur.Task.Agent != agent {
			return task.Change{}, errs.ErrNotFound
		}
		return task.DecideReturnLater(cur.Task, token, now.Add(after), now, cur.Clock)
	})
	if err != nil {
		return stale(err)
	}
	s.board.publish(change)
	return nil
}

// named gives artifacts without an id a generated one, so that two of them are not merged.
func (s *Workers) named(list []task.ArtifactUpdate) []task.ArtifactUpdate {
	if !slices.ContainsFunc(list, func(u task.ArtifactUpdate) bool { return u.Artifact.ID == "" }) {
		return list
	}
	list = slices.Clone(list)
	for i := range list {
		if list[i].Artifact.ID == "" {
			list[i].Artifact.ID = s.board.newID("artifact-")
		}
	}
	return list
}
