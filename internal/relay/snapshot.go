package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"strconv"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/task"
)

// shown tells what is stored of the remote's task, to report only what is new. It has sums in place of
// contents: a task is followed for long, and the remote's form of it needs the memory.
type shown struct {
	messages  map[string]bool // ids, or sums of those without
	artifacts map[string]seen // by id
	memory    *budget.Account
}

// entrySize is about what a message or an artifact takes there.
const entrySize = 256

// seen is an artifact that is stored.
type seen struct {
	head  uint64 // sum of name and description
	parts int
	sum   uint64 // of the parts
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
	var metadata []byte // of the parts, which sumOf leaves out
	for i := range m.Parts {
		metadata = append(append(metadata, m.Parts[i].Metadata...), ',')
	}
	return fmt.Sprintf("parts %x %x", sumOf(m.Parts), maphash.Bytes(seed, metadata))
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
	f.shown = &shown{memory: account, messages: map[string]bool{}, artifacts: map[string]seen{}}
	for i := range t.History {
		f.shown.messages[keyOf(&t.History[i])] = true
	}
	for i := range t.Artifacts {
		f.shown.artifacts[t.Artifacts[i].ID] = seenOf(&t.Artifacts[i])
	}
	account.Drop(max(0, 2*t.Footprint()-f.shown.size())) // a share for a response is twice the task
	return nil
}

// size is about what it takes in memory.
func (s *shown) size() int64 { return entrySize * int64(len(s.messages)+len(s.artifacts)) }

// grow takes memory for what was added since the size was old.
func (s *shown) grow(ctx context.Context, old int64) error {
	if n := s.size() - old; n > 0 {
		s.memory.Insist() // what was added is reported already
		return s.memory.Hold(ctx, n)
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
	before := int64(0)
	if f.shown != nil {
		before = f.shown.size()
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
	if f.shown != nil {
		if err := f.shown.grow(ctx, before); err != nil {
			return f.busy(err.Error())
		}
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
		old, known := seen{}, false
		if f.shown != nil {
			old, known = f.shown.artifacts[a.ID]
			f.shown.artifacts[a.ID] = seenOf(&a)
		}
		switch rest, grown := old.appended(&a); {
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

// seenOf returns what is kept of an artifact.
func seenOf(a *task.Artifact) seen {
	return seen{head: headOf(a), parts: len(a.Parts), sum: sumOf(a.Parts)}
}

// appended returns the parts that an artifact has beyond those that are stored. ok is false if anything
// else differs.
func (s seen) appended(a *task.Artifact) (rest []task.Part, ok bool) {
	if s.parts > len(a.Parts) || s.head != headOf(a) || s.sum != sumOf(a.Parts[:s.parts]) {
		return nil, false
	}
	return a.Parts[s.parts:], true
}

// seed makes sums that a remote cannot foresee.
var seed = maphash.MakeSeed()

func headOf(a *task.Artifact) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	addText(&h, a.Name)
	addText(&h, a.Description)
	return h.Sum64()
}

// sumOf sums up what makes parts differ. The white space of data does not.
func sumOf(parts []task.Part) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for i := range parts {
		p := &parts[i]
		for _, s := range []string{string(p.Kind), p.Text, p.Name, p.MediaType, p.URL} {
			addText(&h, s)
		}
		add(&h, p.Bytes)
		var data bytes.Buffer
		if json.Compact(&data, p.Data) != nil {
			add(&h, p.Data)
			continue
		}
		add(&h, data.Bytes())
	}
	return h.Sum64()
}

// add and addText add a value with its length, so that no two lists of values have the same bytes.
func add(h *maphash.Hash, b []byte) {
	maphash.WriteComparable(h, len(b))
	_, _ = h.Write(b) // never fails
}

func addText(h *maphash.Hash, s string) {
	maphash.WriteComparable(h, len(s))
	_, _ = h.WriteString(s) // never fails
}
