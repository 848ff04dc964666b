package dispatch

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/stream"
	"github.com/parley-dev/parley/internal/task"
)

// SendRequest asks for a task, or for a further turn of one.
type SendRequest struct {
	ID         string // empty: a new task with an id of ours
	Message    task.Message
	ContextID  string
	FollowupID string
	Replaces   string // the task that has the follow-up now; empty: none
	Metadata   []byte // a JSON object
	// OutputModes are the media types that the sender accepts; nil: it does not say.
	OutputModes []string
	// MustExist refuses an id that the sender has not used before, and a context that
	// is not the task's.
	MustExist bool
	// Push is set in the same write; nil: none.
	Push *task.PushConfig
	// Waiting is called when the message is stored and Send begins to wait; nil: nothing
	// is.
	Waiting func()
	// Show is how much of a known task is returned.
	Show task.Content
}

func (r *SendRequest) check() error {
	f := errs.Under(r.Message.Check(), "message")
	f = append(f, task.CheckID("id", r.ID)...)
	f = append(f, task.CheckID("context_id", r.ContextID)...)
	f = append(f, task.CheckObject("metadata", r.Metadata)...)
	f = append(f, task.CheckIDs("output_modes", r.OutputModes)...)
	if len(f) > 0 {
		return errs.InvalidFields(f...)
	}
	return nil
}

func (r *SendRequest) turn() task.Turn {
	return task.Turn{Message: r.Message, OutputModes: r.OutputModes, Metadata: r.Metadata}
}

// Send sends a task, or a further message on one. The answer is given when it is
// durable; with wait it is given when the task rests or the time is over.
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
	if t.Size > maxFolded { // nothing large is held while the agent works
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

// maxFolded is the size up to which a task is folded while it is waited for. A larger
// one is read when the wait is over.
const maxFolded = 16 << 10

// await follows a task until it rests or the time is over. Unless t is whole, only its
// state is kept up to date.
func await(ctx context.Context, topic *stream.Topic, t *task.Task, wait time.Duration) (whole bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	size := t.Size
	for e, err := range topic.Events(ctx, t.Seq, 0) {
		if err != nil && ctx.Err() == nil {
			return false, err
		}
		if err != nil {
			break // the time is over, not the task
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

// sent is what a send leads to.
type sent struct {
	task   task.Task
	before int64         // the events after it are those of the send
	topic  *stream.Topic // if it is to be followed; must be left
}

// send writes the task or the turn. If follow is set the caller gets the topic of
// the task, and must leave it.
func (s *Tasks) send(ctx context.Context, c Call, r SendRequest, follow bool) (_ sent, err error) {
	if err := r.check(); err != nil {
		return sent{}, err
	}
	if c.hidden != nil {
		if c, err = s.Aim(ctx, c, r.ID); err != nil {
			return sent{}, err
		}
	}
	if r.Push != nil {
		if r.Push, err = s.sentPush(*r.Push); err != nil {
			return sent{}, err
		}
	}
	if r.MustExist {
		return s.turn(ctx, c, r, follow)
	}
	room, refusal := s.quotas.admit(ctx, &c, r.Push != nil)
	if r.ID == "" {
		if refusal != nil {
			return sent{}, refusal
		}
		r.ID = s.board.newID("t-")
	}
	if refusal == nil {
		done, err := s.insert(ctx, c, r, follow)
		room.end(err)
		if err == nil || errs.As(err).Code != errs.CodeExists {
			return done, err
		}
	}
	done, err := s.turn(ctx, c, r, follow)
	if refusal != nil && errs.KindOf(err) == errs.NotFound {
		err = refusal // it would have been a new task
	}
	return done, err
}

// insert makes a new task. A worker that waits on this node, or an agent that
// runs in it, gets it in the same write.
func (s *Tasks) insert(ctx context.Context, c Call, r SendRequest, follow bool) (sent, error) {
	b := s.board
	now := b.now()
	t := task.Task{
		UID: b.newID(""), Org: c.target.Org, Agent: c.target.ID, Sender: c.sender, ID: r.ID, ContextID: r.ContextID,
		FollowupID: r.FollowupID, Metadata: r.Metadata,
	}
	if t.ContextID == "" {
		t.ContextID = b.newID("ctx-")
	}
	place := b.place(c.target.Key(), t.UID, now)
	lease, length := place.leased()
	change, err := task.DecideNew(t, r.turn(), lease, b.limits, now)
	if err != nil {
		place.free()
		return sent{}, err
	}
	change.Push, change.Task.Push = r.Push, r.Push != nil
	change.Replaces = r.Replaces
	var topic *stream.Topic
	if follow {
		topic = b.hub.Follow(t.Ref(), c.sender.Org, 0)
	}
	if err := b.write.Insert(ctx, change, length); err != nil {
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

// fold makes the task that a first change describes.
func fold(c task.Change) task.Task {
	t := c.Task
	for i := range c.Events {
		t.Apply(&c.Events[i])
	}
	return t
}

// turn adds a message to a task that the sender has.
func (s *Tasks) turn(ctx context.Context, c Call, r SendRequest, follow bool) (sent, error) {
	b := s.board
	now := b.now()
	var guard *pushGuard
	if r.Push != nil {
		guard = s.newPushGuard(ctx, c.sender)
	}
	key, bytes := c.key(r.ID), r.Message.Length()
	change, err := b.write.UpdateByKey(ctx, key, bytes, func(cur task.Current) (task.Change, error) {
		if r.MustExist && r.ContextID != "" && r.ContextID != cur.Task.ContextID {
			return task.Change{}, errs.InvalidFields(errs.Field{
				Path: errs.At("message", "context_id"), Message: "must be the context of the task, or be left out",
			})
		}
		change, err := task.DecideTurn(cur.Task, r.turn(), b.limits, now)
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
		done.topic = b.hub.Follow(ref, c.sender.Org, done.before)
	}
	b.publish(change)
	if len(change.Events) == 0 {
		done.before = 0 // repeated: its events may be any
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

func field(name, msg string) errs.Field { return errs.Field{Path: errs.At(name), Message: msg} }
