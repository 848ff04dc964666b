package dispatch

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/policy"
	"github.com/parley-dev/parley/internal/stream"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/trace"
)

// SendRequest creates a task, or adds a message to one.
type SendRequest struct {
	ID         string // empty for a new task with a generated id
	Message    task.Message
	ContextID  string
	FollowupID string
	Replaces   string // uid of the task that works on the follow-up now; may be empty
	Metadata   []byte // a JSON object
	// Policy of a new task; what it does not set comes from the agent.
	Policy policy.Policy
	// OutputModes are the media types that the sender accepts; may be nil.
	OutputModes []string
	// MustExist refuses an id that the sender has not used before, and a context other than
	// the task's.
	MustExist bool
	// Push is set in the same write; may be nil.
	Push *task.PushConfig
	// Waiting is called when the message is stored and Send begins to wait; may be nil.
	Waiting func()
	// Show selects the content that is returned of an existing task.
	Show task.Content

	// Of a task that is sent again; see Rerun.
	later []task.Turn // after the message
	once  bool        // write under the idempotency key of the context
}

func (r *SendRequest) check() error {
	f := errs.Under(r.Message.Check(), "message")
	f = append(f, task.CheckID("id", r.ID)...)
	f = append(f, task.CheckID("context_id", r.ContextID)...)
	f = append(f, task.CheckObject("metadata", r.Metadata)...)
	f = append(f, task.CheckIDs("output_modes", r.OutputModes)...)
	f = append(f, errs.Under(r.Policy.Check(), "policy")...)
	if len(f) > 0 {
		return errs.InvalidFields(f...)
	}
	return nil
}

func (r *SendRequest) turn(ctx context.Context) task.Turn {
	return task.Turn{
		Message: r.Message, OutputModes: r.OutputModes, Metadata: r.Metadata, Trace: trace.From(ctx).String(),
	}
}

// Send sends a task, or a further message on one. It returns when the write is durable; with
// wait, it returns when the task rests or the time is over.
func (s *Tasks) Send(ctx context.Context, c Call, r SendRequest, wait time.Duration) (task.Task, error) {
	sent, err := s.send(ctx, c, r, wait > 0)
	t, topic := sent.task, sent.topic
	if err != nil || topic == nil {
		return t, err
	}
	defer topic.Leave()
	if t.State.Rests() {
		return t, nil
	}
	if t.Size > maxFolded { // hold nothing large while the agent works
		t.History, t.Artifacts, r.Message = nil, nil, task.Message{}
	}
	if r.Waiting != nil {
		r.Waiting()
	}
	budget.From(ctx).Settle()
	whole, err := await(ctx, topic, &t, wait)
	if err != nil || whole {
		return t, err
	}
	budget.From(ctx).Insist()
	return s.board.loadStored(ctx, &t, r.Show)
}

// maxFolded is the size up to which a task is kept in memory while a caller waits for it. A
// larger task is read again after the wait.
const maxFolded = 16 << 10

// await applies events to t until the task rests or the time is over. If whole is false, only
// the state of t is up to date.
func await(ctx context.Context, topic *stream.Topic, t *task.Task, wait time.Duration) (whole bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	size := t.Size
	for e, err := range topic.Events(ctx, t.Seq, 0) {
		if err != nil && ctx.Err() == nil {
			return false, err
		}
		if err != nil {
			break // the wait is over
		}
		size += e.Size()
		switch {
		case size > maxFolded || e.Kind == task.TurnEvent && e.Message == nil:
			size = maxFolded + 1
			t.History, t.Artifacts, t.Seq = nil, nil, e.Seq
			if e.Kind == task.StatusEvent {
				t.State = e.State
			}
		default:
			t.Apply(&e)
		}
		if t.State.Rests() {
			break
		}
	}
	return size <= maxFolded, nil
}

// sent is the result of a send.
type sent struct {
	task   task.Task
	before int64         // the events of the send come after this one
	topic  *stream.Topic // nil unless it was asked for; the caller must call Leave
}

// send writes a new task or a turn. With follow, the result has the topic of the task.
func (s *Tasks) send(ctx context.Context, c Call, r SendRequest, follow bool) (_ sent, err error) {
	if err := c.check(); err != nil {
		return sent{}, err
	}
	if err := r.check(); err != nil {
		return sent{}, err
	}
	if c.hidden != nil {
		if c, err = s.Aim(ctx, c, r.ID); err != nil {
			return sent{}, err
		}
	}
	if r.Push != nil {
		if r.Push, err = s.sentPush(&c, *r.Push); err != nil {
			return sent{}, err
		}
	}
	if r.MustExist || r.ID != "" && s.board.read.Taken(ctx, c.key(r.ID)) {
		return s.turn(ctx, c, r, follow)
	}
	room, refusal := s.quotas.admit(ctx, &c, r.Push != nil)
	chosen := r.ID != ""
	if !chosen {
		r.ID = s.board.newID("t-")
	}
	if refusal == nil {
		var done sent
		done, refusal = s.insert(ctx, c, r, follow)
		room.end(refusal)
		if refusal == nil || mayBeWritten(refusal) {
			return done, refusal
		}
	}
	if !chosen {
		return sent{}, refusal
	}
	// What refuses a new task, such as a quota, does not apply to a message on one that exists.
	done, err := s.turn(ctx, c, r, follow)
	if errs.KindOf(err) == errs.NotFound {
		err = refusal
	}
	return done, err
}

// insert creates a task. If a worker waits on this node, or the agent runs in it, the task is
// leased in the same write.
func (s *Tasks) insert(ctx context.Context, c Call, r SendRequest, follow bool) (sent, error) {
	b := s.board
	now := b.now()
	var err error
	if r.Metadata, err = s.chained(ctx, &c, r.Metadata); err != nil {
		return sent{}, err
	}
	t := task.Task{
		UID: b.newID(""), Org: c.target.Org, Agent: c.target.ID, Sender: c.sender(), ID: r.ID,
		ContextID: r.ContextID, FollowupID: r.FollowupID, Metadata: r.Metadata,
		Policy: r.Policy.Or(c.target.Policy).From(now),
	}
	if f := errs.Under(t.Policy.CheckDeadline(), "policy"); len(f) > 0 {
		return sent{}, errs.InvalidFields(f...)
	}
	if t.ContextID == "" {
		t.ContextID = b.newID("ctx-")
	}
	place, lease, length := b.place(c.target.Key(), t.UID, now)
	change, err := task.DecideNew(t, r.turn(ctx), lease, b.limits, now, r.later...)
	if err != nil {
		place.free()
		return sent{}, err
	}
	change.Push, change.Task.Push = r.Push, r.Push != nil
	change.Replaces, change.Charge = r.Replaces, c.charge(now)
	var topic *stream.Topic
	if follow {
		topic = b.hub.Follow(t.Ref(), c.sender().Org, 0)
	}
	write := b.write.Insert
	if r.once {
		write = b.write.InsertOnce
	}
	if err := write(ctx, change, length); err != nil {
		place.free()
		if topic != nil {
			topic.Leave()
		}
		return sent{}, err
	}
	t = fold(change)
	b.publish(change)
	place.start(t)
	return sent{task: t, topic: topic}, nil
}

// fold returns the task after its first change.
func fold(c task.Change) task.Task {
	t := c.Task
	for i := range c.Events {
		t.Apply(&c.Events[i])
	}
	return t
}

// turn adds a message to an existing task of the sender.
func (s *Tasks) turn(ctx context.Context, c Call, r SendRequest, follow bool) (sent, error) {
	b := s.board
	now := b.now()
	var guard *pushGuard
	if r.Push != nil {
		guard = s.newPushGuard(ctx, c.sender())
	}
	key, bytes, turn := c.key(r.ID), r.Message.Length(), r.turn(ctx)
	change, err := b.write.UpdateByKey(ctx, key, bytes, func(cur task.Current) (task.Change, error) {
		if r.MustExist && r.ContextID != "" && r.ContextID != cur.Task.ContextID {
			return task.Change{}, errs.InvalidFields(errs.Field{
				Path: errs.At("message", "context_id"), Message: "must be the context of the task, or be left out",
			})
		}
		change, err := task.DecideTurn(cur.Task, turn, b.limits, now)
		if change.Push = r.Push; guard != nil {
			change.PushGuard = guard.of(&cur.Task)
		}
		return change, err
	})
	guard.end(err)
	if err != nil {
		return sent{}, err
	}
	ref := change.Task.Ref()
	done := sent{before: change.Task.Seq - int64(len(change.Events))}
	if follow {
		done.topic = b.hub.Follow(ref, c.sender().Org, done.before)
	}
	b.publish(change)
	if len(change.Events) == 0 {
		done.before = 0 // a repetition: its events are not known
	}
	if done.task, err = b.loadStored(ctx, &change.Task, r.Show); err != nil {
		if done.topic != nil {
			done.topic.Leave()
		}
		return sent{}, err
	}
	if done.topic != nil {
		go b.hub.Hint(context.WithoutCancel(ctx), ref)
	}
	return done, nil
}
