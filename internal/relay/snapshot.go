package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/task"
)

// shown is what is stored of the remote's task, to report only what is new.
type shown struct {
	messages  map[string]bool // ids, or contents of those without
	artifacts map[string]task.Artifact
	memory    *budget.Account
}

// forget frees the memory.
func (f *follower) forget() {
	if f.shown != nil {
		f.shown.memory.Close()
		f.shown = nil
	}
}

// keyOf identifies a message of the remote.
func keyOf(m *task.Message) string {
	if m.ID != "" {
		return "id " + m.ID
	}
	b, err := json.Marshal(m.Parts)
	if err != nil {
		return ""
	}
	return "parts " + string(b)
}

// loadShown reads what is stored of the task.
func (f *follower) loadShown(ctx context.Context) error {
	if f.shown != nil {
		return nil
	}
	account := f.inst.account()
	t, err := f.w.Load(context.WithValue(ctx, budget.Key{}, account))
	account.Settle()
	if err != nil {
		account.Close()
		switch {
		case errs.KindOf(err) == errs.NotFound:
			return task.ErrStaleLease
		case budget.IsBusy(err):
			return f.busy(err.Error())
		}
		return fmt.Errorf("%w: %w", dispatch.ErrHandBack, err)
	}
	account.Drop(t.Footprint()) // half of it is for a response that is never encoded
	f.shown = &shown{memory: account, messages: map[string]bool{}, artifacts: map[string]task.Artifact{}}
	for i := range t.History {
		f.shown.messages[keyOf(&t.History[i])] = true
	}
	for _, a := range t.Artifacts {
		f.shown.artifacts[a.ID] = a
	}
	return nil
}

// read reads the remote's task and reports what is new. A stream that is silent is left alone unless
// the remote's task waits or is over.
func (f *follower) read(ctx context.Context) error {
	if f.link.Task == "" {
		f.readSoon(quietStream)
		return nil
	}
	f.soon = false
	if f.stream == nil { // before the remote's task: the two together may need all memory of this relay
		if err := f.loadShown(ctx); err != nil {
			return err
		}
	}
	t, memory, err := f.c.get(ctx, f.link.Task)
	defer memory.release()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return f.unread(ctx, err)
	}
	f.reached()
	f.faults = 0
	if f.stream != nil && !t.Status.State.Terminal() && !interrupted(t.Status.State) {
		f.readSoon(quietStream)
		return nil
	}
	f.drop()
	return f.compare(ctx, t)
}

func interrupted(s a2a.TaskState) bool {
	return s == a2a.TaskStateInputRequired || s == a2a.TaskStateAuthRequired
}

// unread handles the error of reading the remote's task.
func (f *follower) unread(ctx context.Context, err error) error {
	switch judge(err) {
	case transient:
		f.drop()
		f.readSoon(0)
		return f.again(ctx, err)
	case tooLarge:
		return f.endUnfinished(ctx, f.why(err))
	case forgotten:
		return dispatch.LostAfter(0, upper(f.why(err)))
	case unable:
		if f.stream != nil { // which says all there is to know
			f.readSoon(quietStream)
			return nil
		}
	case faulty, refused:
		if f.faults++; f.faults < faultsMost {
			f.readSoon(pollFirst << f.faults)
			return nil
		}
	}
	// The remote's task cannot be followed. It must not go on beside the next attempt.
	if _, cerr := f.c.cancel(ctx, f.link.Task); cerr != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return f.fault(err)
}

// compare reports what is new in the remote's task. From the first time on, the task is followed by
// reading it: a stream could repeat what was read, or omit what was missed.
func (f *follower) compare(ctx context.Context, t *a2a.Task) error {
	if f.stream == nil || len(t.Artifacts) > 0 {
		if err := f.loadShown(ctx); err != nil {
			return err
		}
	}
	state, m := statusOf(&t.Status)
	fresh := f.shown == nil || m == nil || !f.shown.messages[keyOf(m)]
	if f.shown != nil {
		for _, h := range t.History {
			if h == nil || h.Role != a2a.MessageRoleAgent || m != nil && h.ID == m.ID {
				continue
			}
			if old := incoming(h); old != nil && old.ID != "" && !f.shown.messages[keyOf(old)] {
				f.shown.messages[keyOf(old)] = true
				if err := f.report(ctx, task.Report{Message: old}); err != nil {
					return err
				}
			}
		}
	}
	if state.Interrupted() && (!fresh || m == nil && f.link.Forwarded > 1) &&
		f.inst.e.now().Sub(f.sentAt) < f.staleFor(&t.Status) {
		f.pause() // the remote has not begun to handle the message yet
		return nil
	}
	r := task.Report{State: state, Message: m, Artifacts: f.news(t.Artifacts)}
	if !fresh && !state.Rests() {
		r.Message = nil
	}
	if m != nil && f.shown != nil {
		f.shown.messages[keyOf(m)] = true
	}
	if len(r.Artifacts) > 0 || r.Message != nil {
		f.pace = pollFirst
	}
	if err := f.writeBatch(ctx, &batch{report: r}); err != nil {
		return err
	}
	if f.stream != nil {
		f.forget() // the stream goes on, and changes what is stored
		return nil
	}
	f.pause()
	f.resubscribe(ctx)
	return nil
}

// staleFor returns how long after a message a question counts as one from before the message.
func (f *follower) staleFor(s *a2a.TaskStatus) time.Duration {
	if f.asked != nil && s.Timestamp != nil && s.Timestamp.Equal(*f.asked) {
		return staleMost
	}
	return stale
}

// wake reads the remote's task soon, because its stream says that something has happened. ok is false
// at the end of the stream.
func (f *follower) wake(ok bool) {
	if !ok {
		f.wakes.stop()
		f.wakes = nil
		f.wakeAt = f.inst.e.now().Add(quietStream)
	}
	if !f.soon {
		f.soon = true
		f.readSoon(pollFirst / 2)
	}
}

// pause sets when the remote's task is read next: later and later while nothing happens.
func (f *follower) pause() {
	f.readSoon(f.pace)
	f.pace = min(f.pace*3/2, pollMost)
}

// resubscribe lets a stream of the remote say when there is something to read.
func (f *follower) resubscribe(ctx context.Context) {
	if now := f.inst.e.now(); f.wakes != nil || !f.c.streams() || now.Before(f.wakeAt) {
		return
	}
	f.wakes = f.c.subscribe(ctx, f.link.Task)
}

// news returns what is new in the artifacts of the remote: only the new parts, if the remote has
// appended some.
func (f *follower) news(list []*a2a.Artifact) (out []task.ArtifactUpdate) {
	for _, a := range distinct(list) {
		old, known := task.Artifact{}, false
		if f.shown != nil {
			old, known = f.shown.artifacts[a.ID]
			f.shown.artifacts[a.ID] = a
		}
		switch rest, grown := appended(&old, &a); {
		case known && grown && len(rest) == 0:
		case known && grown:
			a.Parts = rest
			out = append(out, task.ArtifactUpdate{Artifact: a, Append: true})
		default:
			out = append(out, task.ArtifactUpdate{Artifact: a})
		}
	}
	return out
}

// distinct converts artifacts of the remote. Of those with the same id, the last one counts. An
// artifact without an id gets a name from its position among those: artifact, artifact-2 and so on.
// Streams, which show no position, always use artifact.
func distinct(list []*a2a.Artifact) (out []task.Artifact) {
	taken := map[string]bool{}
	for _, one := range list {
		if one != nil {
			taken[string(one.ID)] = true
		}
	}
	at := map[string]int{}
	unnamed := 0
	for _, one := range list {
		a, ok := artifact(one)
		if one != nil && one.ID == "" {
			if unnamed++; unnamed > 1 {
				a.ID += "-" + strconv.Itoa(unnamed)
			}
			for taken[a.ID] {
				a.ID += "-"
			}
		}
		if !ok {
			continue
		}
		if i, known := at[a.ID]; known {
			out[i] = a
			continue
		}
		at[a.ID] = len(out)
		out = append(out, a)
	}
	return out
}

// appended returns the parts that an artifact has beyond those of its older form. ok is false if
// anything else differs.
func appended(old, a *task.Artifact) (rest []task.Part, ok bool) {
	if old.Name != a.Name || old.Description != a.Description || len(old.Parts) > len(a.Parts) {
		return nil, false
	}
	for i := range old.Parts {
		if !samePart(&old.Parts[i], &a.Parts[i]) {
			return nil, false
		}
	}
	return a.Parts[len(old.Parts):], true
}

func samePart(a, b *task.Part) bool {
	return a.Kind == b.Kind && a.Text == b.Text && a.Name == b.Name && a.MediaType == b.MediaType && a.URL == b.URL &&
		bytes.Equal(a.Bytes, b.Bytes) && sameJSON(a.Data, b.Data)
}

func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}
