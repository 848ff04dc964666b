package relay

import (
	"context"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/parley-dev/parley/internal/task"
)

// take handles an event of the stream, and those that have arrived since. ok is false at the end of
// the stream.
func (f *follower) take(ctx context.Context, i item, ok bool) error {
	var b batch
	for n := 1; ; n++ {
		if ok {
			defer i.done() // after it is written; maxQueued bounds how many there are
		}
		if !ok || i.err != nil {
			if err := f.writeBatch(ctx, &b); err != nil {
				return err
			}
			return f.broke(ctx, i.err)
		}
		if !f.owns(i.event) {
			i.event = nil
		}
		if n > maxBatch || !b.add(i.event) {
			if err := f.writeBatch(ctx, &b); err != nil {
				return err
			}
			n, b = 1, batch{}
			if !b.add(i.event) {
				if err := f.whole(ctx, i.event); err != nil {
					return err
				}
			}
		}
		if f.stream == nil {
			return f.writeBatch(ctx, &b)
		}
		select {
		case i, ok = <-f.stream.items:
			continue
		default:
		}
		f.readSoon(quietStream)
		return f.writeBatch(ctx, &b)
	}
}

// owns reports whether an event belongs to the task that the remote has made of ours.
func (f *follower) owns(e a2a.Event) bool {
	if e == nil || f.link.Task == "" {
		return e != nil
	}
	of := string(e.TaskInfo().TaskID)
	return of == "" || of == f.link.Task
}

// broke continues after a stream has ended early: from now on the remote's task is read as a whole.
func (f *follower) broke(ctx context.Context, err error) error {
	f.drop()
	if judge(err) == tooLarge && err != nil {
		return f.endUnfinished(ctx, f.why(err))
	}
	if f.link.Task == "" {
		// The remote has the message, but did not say which task it made of it.
		f.link.Forwarded = 0
		if err == nil {
			err = errDropped
		}
		return f.again(ctx, err)
	}
	f.readSoon(0)
	return nil
}

// endUnfinished fails a task whose remote may go on. The link stays, so that the remote's task is
// canceled.
func (f *follower) endUnfinished(ctx context.Context, why string) error {
	if err := f.mustSave(ctx); err != nil {
		return err
	}
	if err := f.write(ctx, task.Report{State: task.Failed, Message: task.Says(upper(why) + ".")}); err != nil {
		return err
	}
	return errDone
}

// whole handles an event that has more than a change.
func (f *follower) whole(ctx context.Context, e a2a.Event) error {
	switch e := e.(type) {
	case *a2a.Task:
		return f.compare(ctx, e)
	case *a2a.Message:
		return f.replied(ctx, e)
	}
	return nil
}

// replied handles a message of the remote outside of a task's status. If there is no task, it is the
// whole result.
func (f *follower) replied(ctx context.Context, e a2a.Event) error {
	m, ok := e.(*a2a.Message)
	if !ok {
		return nil
	}
	said := incoming(m)
	switch {
	case f.link.Task != "" && said != nil:
		return f.report(ctx, task.Report{Message: said})
	case f.link.Task != "":
		return nil
	case said == nil:
		return f.end(ctx, task.Report{State: task.Completed})
	}
	return f.end(ctx, task.Report{State: task.Completed, Message: said, Reply: true})
}

// batch collects changes for one report: artifacts, and at last a status.
type batch struct {
	report task.Report
	status bool
}

// add adds a change. It returns false if the batch is complete, or if the event is no change.
func (b *batch) add(e a2a.Event) bool {
	if b.status {
		return false
	}
	switch e := e.(type) {
	case *a2a.TaskArtifactUpdateEvent:
		if a, ok := artifact(e.Artifact); ok {
			b.artifact(task.ArtifactUpdate{Artifact: a, Append: e.Append, LastChunk: e.LastChunk, More: !e.LastChunk})
		}
		return true
	case *a2a.TaskStatusUpdateEvent:
		b.report.State, b.report.Message = statusOf(&e.Status)
		b.status = true
		return true
	case *a2a.Task:
		if len(e.Artifacts) > 0 {
			return false
		}
		state, message := statusOf(&e.Status)
		if state.Interrupted() {
			return true // it may be the state before the message; if it is not, the stream ends, and the task is read
		}
		b.report.State, b.report.Message, b.status = state, message, true
		return true
	}
	return false
}

// artifact adds an artifact. Chunks of one artifact that follow each other become one.
func (b *batch) artifact(u task.ArtifactUpdate) {
	if n := len(b.report.Artifacts); n > 0 && u.Append {
		last := &b.report.Artifacts[n-1]
		if last.Artifact.ID == u.Artifact.ID && len(last.Artifact.Parts)+len(u.Artifact.Parts) <= task.MaxParts {
			last.Artifact.Parts = append(last.Artifact.Parts, u.Artifact.Parts...)
			last.LastChunk, last.More = u.LastChunk, u.More
			return
		}
	}
	b.report.Artifacts = append(b.report.Artifacts, u)
}

// writeBatch reports a batch.
func (f *follower) writeBatch(ctx context.Context, b *batch) error {
	r := b.report
	switch {
	case r.State.Terminal() && r.State != "":
		for i := range r.Artifacts {
			r.Artifacts[i].More = false
		}
		return f.end(ctx, r)
	case r.State.Interrupted():
		return f.ask(ctx, r)
	case len(r.Artifacts) == 0 && r.Message == nil:
		return nil
	}
	return f.report(ctx, r)
}

// ask reports that the remote waits for the sender, unless the sender has said more since.
func (f *follower) ask(ctx context.Context, r task.Report) error {
	if f.link.Forwarded < len(f.turns) {
		r.State = ""
		if len(r.Artifacts) == 0 && r.Message == nil {
			return nil
		}
		return f.report(ctx, r)
	}
	if err := f.mustSave(ctx); err != nil { // whoever claims the task next needs the link
		return err
	}
	if err := f.write(ctx, r); err != nil {
		return f.unwritten(ctx, err)
	}
	return errDone
}
