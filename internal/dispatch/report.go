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

// Progress is the answer to a report.
type Progress struct {
	State     task.State
	Canceled  bool
	ExpiresAt time.Time      // of the lease; zero: it is over
	Turns     []task.Message // what the sender said since the claim or the last report
	Seen      int64          // the number of the last event that the worker knows by now
	More      bool           // not all that the sender said is in Turns; the next report returns the rest
}

// Report takes a worker's report. When the lease is over nothing is changed, and
// the answer is Conflict, unless the task was canceled under this very lease:
// then the answer says so.
func (s *Workers) Report(ctx context.Context, p Post, token string, r task.Report) (Progress, error) {
	uid, ok := taskOf(token)
	if !ok {
		return Progress{}, task.ErrStaleLease
	}
	return s.report(ctx, p.target.Org, p.target.ID, uid, token, r)
}

func (s *Workers) report(ctx context.Context, org, agent, uid, token string, r task.Report) (Progress, error) {
	if err := r.Validate(); err != nil {
		return Progress{}, err
	}
	r.Artifacts = s.named(r.Artifacts)
	now := s.board.now()
	decide := func(cur task.Current) (task.Change, error) {
		if cur.Task.Agent != agent {
			return task.Change{}, errs.ErrNotFound
		}
		change, err := task.DecideReport(cur.Task, token, r, s.board.limits, now, cur.Clock)
		seq := change.Task.Seq
		change.Reported = task.Reported{Given: r.Known(&cur.Task), Before: seq - int64(len(change.Events)), Seq: seq}
		return change, err
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

// progress publishes a report that is stored, and makes the response to it. The report is
// stored, so it is no failure if the turns cannot be read: they stay undelivered, and the
// response says that there is more.
func (s *Workers) progress(ctx context.Context, token string, change task.Change) Progress {
	s.board.publish(change)
	t := &change.Task
	out := Progress{State: t.State, Canceled: t.State == task.Canceled, ExpiresAt: t.Lease.ExpiresAt, Seen: t.Seq}
	if !s.addTurns(ctx, &out, t, change.Reported) {
		s.undeliver(ctx, t, token, out.Seen)
	}
	return out
}

// addTurns adds what the sender said between what the worker knew and the report. It
// reports whether all of that could be read; if not, the response says that there is more.
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

// repeated is the response to a report that was stored before under its idempotency key.
// It has the same messages as the first one and the state of now. Nothing is changed: what
// counts as delivered may have moved on with later reports.
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

// undeliver notes that the worker was not given the turns after an event.
func (s *Workers) undeliver(ctx context.Context, t *task.Task, token string, seq int64) {
	_, err := s.board.write.Update(context.WithoutCancel(ctx), t.Org, t.UID, 0, func(cur task.Current) (task.Change, error) {
		return task.DecideUnseen(cur.Task, token, seq)
	})
	if err != nil {
		s.board.onError(fmt.Errorf("messages of task %s may not reach its worker: %w", t.UID, err))
	}
}

// stale turns "no such task" into the stale lease that it means to a worker.
func stale(err error) error {
	if errs.KindOf(err) == errs.NotFound {
		return task.ErrStaleLease
	}
	return err
}

// turns reads what the sender said after one event and up to another. What comes later
// is for the next report. read is the last event that was read. Memory is taken once,
// before anything is read: reports that took it bit by bit would wait for each other.
func (s *Workers) turns(ctx context.Context, t *task.Task, after, upTo int64) (out []task.Message, read int64, err error) {
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
				held -= 2 * e.Size() // that much is kept
			}
			after = e.Seq
		}
	}
	return out, after, nil
}

// Return hands a task back to the queue at once.
func (s *Workers) Return(ctx context.Context, p Post, token string) error {
	uid, ok := taskOf(token)
	if !ok {
		return task.ErrStaleLease
	}
	now := s.board.now()
	change, err := s.board.write.Update(ctx, p.target.Org, uid, 0, func(cur task.Current) (task.Change, error) {
		if cur.Task.Agent != p.target.ID {
			return task.Change{}, errs.ErrNotFound
		}
		return task.DecideReturn(cur.Task, token, now, cur.Clock)
	})
	if err != nil {
		return stale(err)
	}
	s.board.publish(change)
	return nil
}

// named gives artifacts without an id one of ours: without, two of them would be
// taken for one.
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
