package relay

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/task"
)

const (
	// grace is how long the first response to a message is awaited after the work has ended, to
	// learn which task must be canceled.
	grace = 3 * time.Second
	// quietStream is after how much silence of a stream the remote's task is read: the connection
	// may be dead.
	quietStream = 30 * time.Second
	// pollFirst and pollMost bound the time between two readings of a remote's task.
	pollFirst = 500 * time.Millisecond
	pollMost  = 5 * time.Second
	// retryMost bounds the time between two attempts to reach the remote.
	retryMost = 10 * time.Second
	// maxBatch bounds how many events of a stream are written at once.
	maxBatch = 64
	// waitFirst and waitMost bound how long a task to which the remote responded in a wrong way stays
	// out of the queue, so that other tasks go first.
	waitFirst = 2 * time.Second
	waitMost  = 2 * time.Minute
	// busyMost bounds how long a task waits in the queue because the node had no memory for it.
	busyMost = 10 * time.Second
	// waitShare makes the waits of a very old task longer: each is a few events of the task, whose number
	// is limited.
	waitShare = 200
	// faultsMost is how many wrong responses to a request about the remote's task are tolerated: the task may
	// go on there.
	faultsMost = 4
	// stale is how long after a message a question that was known before is not repeated.
	// staleMost is that for a question that the remote repeated in its response to the message.
	stale     = 5 * time.Second
	staleMost = time.Minute
	// saveDelay is how long a link waits to be stored. Most tasks that end sooner need no link.
	saveDelay = 10 * time.Millisecond
)

// follower works on one task under one lease.
type follower struct {
	inst *instance
	c    *client
	w    *dispatch.Work
	t    *task.Task

	link   Link
	stored bool           // the store may have the link
	dirty  bool           // the link differs from the stored one
	save   *time.Timer    // when a dirty link is stored
	turns  []task.Message // all messages of the sender
	stream *source        // nil: none
	look   *time.Timer    // when the remote's task is read next
	pace   time.Duration  // between two readings
	tries  int            // failed requests in a row
	faults int            // wrong responses in a row to readings of the remote's task
	asked  *time.Time     // of the question in the response to the last message; nil: none
	sentAt time.Time      // when the last message was sent
	shown  *shown         // not nil: the remote's task is followed by reading it
	wakes  *source        // a resubscribed stream: its events only say that there is something to read
	wakeAt time.Time      // not before this time the remote is asked for another such stream
	soon   bool           // the remote's task is read soon because of such an event
}

// Run implements dispatch.Runner.
func (inst *instance) Run(ctx context.Context, a dispatch.Assignment, w *dispatch.Work) error {
	c, err := inst.client()
	if err != nil {
		inst.broken(err)
		return fmt.Errorf("%w: %w", dispatch.ErrHandBack, err)
	}
	f := &follower{inst: inst, c: c, w: w, t: &a.Task, pace: pollFirst}
	if f.link, f.stored, err = inst.e.store.Link(ctx, a.Task.Org, a.Task.UID); err != nil {
		return fmt.Errorf("%w: %w", dispatch.ErrHandBack, err)
	}
	if !f.stored || f.link.Attempt != a.Number {
		f.link = Link{
			Org: a.Task.Org, UID: a.Task.UID, Agent: a.Task.Agent, Attempt: a.Number, CreatedAt: inst.e.now(),
		}
	}
	if f.link.Task == "" {
		f.link.Forwarded = 0 // no task to follow
	} else {
		f.sentAt = inst.e.now() // perhaps: another node may have sent the last message just before
	}
	for _, m := range a.Task.History {
		if m.Role == task.RoleUser {
			f.turns = append(f.turns, m)
		}
	}
	f.look, f.save = time.NewTimer(time.Hour), time.NewTimer(time.Hour)
	defer f.close()
	err = f.run(ctx)
	if err := f.saveLink(ctx); err != nil { // before the task goes back to the queue
		inst.e.onError(err)
	}
	if errors.Is(err, errDone) {
		return nil
	}
	return err
}

// errDone ends the work on a task that was reported as over, or as waiting for its sender.
var errDone = errors.New("done")

func (f *follower) close() {
	f.look.Stop()
	f.save.Stop()
	f.drop()
	if f.wakes != nil {
		f.wakes.stop()
	}
	f.forget()
}

// drop ends the stream.
func (f *follower) drop() {
	if f.stream != nil {
		f.stream.stop()
		f.stream = nil
	}
}

// run follows the remote's task until it is over or waits for its sender. It always returns an error.
func (f *follower) run(ctx context.Context) error {
	if f.link.Task != "" && f.link.Forwarded >= len(f.turns) {
		if err := f.read(ctx); err != nil { // after a break, a restart, or on another node
			return err
		}
	}
	for {
		for f.link.Forwarded < len(f.turns) {
			if err := f.forward(ctx); err != nil {
				return err
			}
		}
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.w.News():
			err = f.report(ctx, task.Report{})
		case i, ok := <-f.streamed():
			err = f.take(ctx, i, ok)
		case i, ok := <-f.woken():
			if ok {
				i.done()
			}
			f.wake(ok)
		case <-f.look.C:
			err = f.read(ctx)
		case <-f.save.C:
			err = f.mustSave(ctx)
		}
		if err != nil {
			return err
		}
	}
}

func (f *follower) streamed() <-chan item {
	if f.stream == nil {
		return nil
	}
	return f.stream.items
}

func (f *follower) woken() <-chan item {
	if f.wakes == nil {
		return nil
	}
	return f.wakes.items
}

// request returns the request that forwards the next message. Its id is the same after a restart, so
// that the remote can recognize a repetition.
func (f *follower) request() (*a2a.SendMessageRequest, error) {
	n := f.link.Forwarded
	m := outgoing(&f.turns[n])
	m.ID = "parley-" + f.link.UID + "-" + strconv.Itoa(f.link.Attempt) + "-" + strconv.Itoa(n+1)
	m.TaskID, m.ContextID = a2a.TaskID(f.link.Task), f.link.Context
	if m.ContextID == "" {
		m.ContextID = contextOf(f.inst.e.platform, f.t)
	}
	raw := f.t.Metadata
	if n > 0 && len(f.t.RequestMetadata) > 0 {
		raw = f.t.RequestMetadata
	}
	meta, err := metadataFor(f.inst.e.platform, raw)
	if err != nil {
		return nil, err
	}
	return &a2a.SendMessageRequest{
		Message: m, Metadata: meta,
		Config: &a2a.SendMessageConfig{AcceptedOutputModes: f.t.OutputModes, ReturnImmediately: true},
	}, nil
}

// forward sends the next message of the sender and handles the first response.
func (f *follower) forward(ctx context.Context) error {
	req, err := f.request()
	if err != nil {
		return err
	}
	streaming := f.c.streams() && f.stream == nil && f.shown == nil
	s := f.c.send(ctx, req, streaming)
	i, ok, err := f.first(ctx, s)
	if err == nil && !ok {
		i.err = errDropped
	}
	if ok {
		defer i.done()
	}
	if err != nil || i.err != nil {
		s.stop()
		if err != nil {
			return err
		}
		return f.unsent(ctx, i.err, streaming)
	}
	f.reached()
	f.sentAt, f.asked = f.inst.e.now(), nil
	if t, ok := i.event.(*a2a.Task); ok && f.link.Forwarded > 0 && interrupted(t.Status.State) {
		f.asked = t.Status.Timestamp
	}
	f.noteSent(i.event)
	if _, reply := i.event.(*a2a.Message); !reply && f.link.Task == "" {
		s.stop()
		return f.fault(errNoTask)
	}
	switch {
	case streaming:
		f.stream = s
	default:
		s.stop()
		f.readSoon(pollFirst)
	}
	if !streaming && f.stream != nil { // the stream has what this response says
		return f.replied(ctx, i.event)
	}
	return f.take(ctx, i, true)
}

// first returns the first event of a response. After the end of ctx it waits a little longer, to
// store the id of the remote's task.
func (f *follower) first(ctx context.Context, s *source) (item, bool, error) {
	for {
		select {
		case i, ok := <-s.items:
			return i, ok, nil
		case <-f.w.News():
			if err := f.report(ctx, task.Report{}); err != nil {
				return item{}, false, err
			}
		case i, ok := <-f.streamed():
			if err := f.take(ctx, i, ok); err != nil {
				return item{}, false, err
			}
		case <-f.save.C: // of the message before
			if err := f.mustSave(ctx); err != nil {
				return item{}, false, err
			}
		case <-ctx.Done():
			select {
			case i, ok := <-s.items:
				if ok && i.err == nil {
					f.noteSent(i.event)
				}
				if ok {
					i.done()
				}
			case <-time.After(grace):
			}
			return item{}, false, ctx.Err()
		}
	}
}

// noteSent notes that the remote has got a message, and responded with an event. The link is stored
// with the next report, or after saveDelay. If this node is lost before that, the message is sent
// again with the same id.
func (f *follower) noteSent(e a2a.Event) {
	f.noteTask(e)
	f.link.Forwarded++
	f.dirty = true
	f.save.Reset(saveDelay)
}

// saveLink stores a link that has changed, even if ctx has ended. If that is because the task was
// canceled, the remote's task could not be canceled before its id was stored.
func (f *follower) saveLink(ctx context.Context) error {
	if !f.dirty {
		return nil
	}
	f.stored = true
	if err := f.inst.e.store.SaveLink(context.WithoutCancel(ctx), f.link); err != nil {
		return err
	}
	f.dirty = false
	if ctx.Err() != nil {
		f.inst.e.taskEnded(task.Ref{Org: f.link.Org, UID: f.link.UID})
	}
	return nil
}

// mustSave stores the link, or hands the task back.
func (f *follower) mustSave(ctx context.Context) error {
	if err := f.saveLink(ctx); err != nil {
		return fmt.Errorf("%w: %w", dispatch.ErrHandBack, err)
	}
	return nil
}

// noteTask remembers which task of the remote an event belongs to.
func (f *follower) noteTask(e a2a.Event) {
	if e == nil {
		return
	}
	if _, reply := e.(*a2a.Message); reply && f.link.Task == "" {
		return
	}
	info := e.TaskInfo()
	if f.link.Task == "" {
		f.link.Task = id(string(info.TaskID))
	}
	if c := id(info.ContextID); c != "" {
		f.link.Context = c
	}
}

// unsent handles the error of a message.
func (f *follower) unsent(ctx context.Context, err error, streaming bool) error {
	why := f.why(err)
	switch v := judge(err); {
	case v == transient:
		return f.again(ctx, err)
	case v == faulty && f.link.Task != "" && f.tries < faultsMost:
		return f.rest(ctx)
	case v == faulty && f.link.Task == "":
		return f.fault(err)
	case v == forgotten && f.link.Task != "":
		return dispatch.LostAfter(0, "The remote agent has lost the task")
	case v == unable && streaming:
		f.c.silent.Store(true) // the card says otherwise
		return nil
	case f.link.Task != "" && f.link.Forwarded > 0: // of a further message: the task goes on
		f.noteSent(nil)
		f.readSoon(0)
		return f.report(ctx, task.Report{Message: task.Says("Your message was not accepted: " + why + ".")})
	case errors.Is(err, a2a.ErrInvalidParams), errors.Is(err, a2a.ErrInvalidRequest), v == unable,
		errors.Is(err, a2a.ErrUnsupportedContentType):
		return f.end(ctx, task.Report{State: task.Rejected, Message: task.Says(upper(why) + ".")})
	default:
		return f.end(ctx, task.Report{State: task.Failed, Message: task.Says(upper(why) + ".")})
	}
}

// why returns an error of a request as a sentence.
func (f *follower) why(err error) string { return explain(f.inst.e.net.guard, f.c.auth, err) }

// fault ends an attempt at which the remote failed, although it works otherwise. The next one starts
// later: the remote may be mended by then.
func (f *follower) fault(err error) error {
	f.reached()
	wait := min(10*time.Second<<(2*min(f.link.Attempt-1, 4)), waitMost)
	return dispatch.LostAfter(wait, upper(f.why(err)))
}

// again waits before the next attempt to reach the remote. If the remote is down, the task goes back
// to the queue until it works again. If the remote responds, but not to this task, the older the task
// is, the longer others go first.
func (f *follower) again(ctx context.Context, err error) error {
	why := f.why(err)
	if budget.IsBusy(err) { // it is not the remote's fault
		return f.busy(why)
	}
	if c, changed := f.inst.client(); changed == nil && c != f.c {
		f.c = c // of a new URL, credential or card: the old one may not work any more
		return nil
	}
	switch f.inst.failed(why); {
	case f.inst.breaker.isOpen() && responded(err):
		return dispatch.HandBackAfter(f.later(), why)
	case f.inst.breaker.isOpen():
		return fmt.Errorf("%w: %s", dispatch.ErrHandBack, why)
	}
	return f.rest(ctx)
}

// busy hands the task back because this node lacks memory for a moment.
func (f *follower) busy(why string) error {
	return dispatch.HandBackAfter(min(f.later(), busyMost), why)
}

// later is how long the task waits in the queue before the remote is asked again.
func (f *follower) later() time.Duration {
	age := f.inst.e.now().Sub(f.t.CreatedAt)
	return min(max(age/2, waitFirst), max(waitMost, age/waitShare))
}

// rest waits before the same request is sent again: longer after each failure.
func (f *follower) rest(ctx context.Context) error {
	wait := min(pollFirst<<min(f.tries, 8), retryMost)
	f.tries++
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reached notes that the remote has responded.
func (f *follower) reached() {
	f.tries = 0
	f.inst.succeeded()
}

// readSoon sets when the remote's task is read next.
func (f *follower) readSoon(in time.Duration) { f.look.Reset(in) }

// report writes a report of a task that goes on, and at the same time the link. Only if the node is
// lost between these two commits, the sender may see work of the remote that is then done again. It
// returns an error if the work on the task is over.
func (f *follower) report(ctx context.Context, r task.Report) error {
	var saving sync.WaitGroup
	var unsaved error
	if f.dirty {
		saving.Go(func() { unsaved = f.mustSave(ctx) })
	}
	err := f.write(ctx, r)
	saving.Wait()
	if err != nil {
		return f.unwritten(ctx, err)
	}
	return unsaved
}

// write writes a report, and adds what the sender has said meanwhile.
func (f *follower) write(ctx context.Context, r task.Report) error {
	p, err := f.w.Report(ctx, r)
	if err == nil {
		f.turns = append(f.turns, p.Turns...)
	}
	return err
}

// unwritten handles the error of a report: what cannot be stored fails the task.
func (f *follower) unwritten(ctx context.Context, err error) error {
	if errs.As(err).Code == task.CodeTooLarge || errs.KindOf(err) == errs.Invalid {
		return f.endUnfinished(ctx, "the response of the remote agent cannot be stored: "+errs.As(err).Message)
	}
	return err
}

// end reports that the task is over, and deletes its link.
func (f *follower) end(ctx context.Context, r task.Report) error {
	f.inst.e.ending.Store(f.link.UID, true)
	defer f.inst.e.ending.Delete(f.link.UID)
	if err := f.write(ctx, r); err != nil {
		return f.unwritten(ctx, err)
	}
	if f.dirty = false; !f.stored {
		return errDone
	}
	if err := f.inst.e.store.DeleteLink(context.WithoutCancel(ctx), f.link); err != nil {
		f.inst.e.onError(err) // it is found and deleted later
	}
	return errDone
}

func upper(s string) string {
	if s != "" && s[0] >= 'a' && s[0] <= 'z' {
		return string(s[0]-'a'+'A') + s[1:]
	}
	return s
}
