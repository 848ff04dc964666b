package a2a

import (
	"slices"
	"strconv"

	"github.com/parley-dev/parley/internal/stream"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/wire"
)

// form encodes tasks for one version and binding of the official protocol. The handling of a
// request is the same in all of them.
type form struct {
	name    string // identifies the encoding in caches
	push    task.PushForm
	wrapped bool // a task or a message is wrapped in an object that names its type
	task    func(b []byte, t *task.Task, history int) []byte
	reply   func(b []byte, t *task.Task) []byte
	event   func(b []byte, t *task.Task, e *task.Event, last bool) []byte
}

var (
	v1Form = &form{
		name: "1.0", push: task.PushV1, wrapped: true, task: wire.AppendV1Task, reply: wire.AppendV1Reply,
		event: func(b []byte, t *task.Task, e *task.Event, _ bool) []byte { return wire.AppendV1Event(b, t, e) },
	}
	v03Form = &form{
		name: "0.3", push: task.PushV03,
		task: wire.AppendV03Task, reply: wire.AppendV03Reply, event: wire.AppendV03Event,
	}
	// v03ProtoForm is the form of version 0.3's HTTP+JSON binding.
	v03ProtoForm = &form{
		name: "0.3 proto", push: task.PushV03, wrapped: true,
		task: wire.AppendV03ProtoTask, reply: wire.AppendV03ProtoReply, event: wire.AppendV03ProtoEvent,
	}
)

func (f *form) send(c *call, params, out []byte) ([]byte, error) {
	p, err := c.readOfficialSend(params, f.push)
	if err != nil {
		return out, err
	}
	t, err := c.sendOfficial(&p)
	if err != nil {
		return out, err
	}
	if !p.isReply(&t) {
		return f.appendTask(room(out, &t), &t, p.history), nil
	}
	if !f.wrapped {
		return f.reply(out, &t), nil
	}
	return append(f.reply(append(out, `{"message":`...), &t), '}'), nil
}

func (f *form) appendTask(b []byte, t *task.Task, history int) []byte {
	if !f.wrapped {
		return f.task(b, t, history)
	}
	return append(f.task(append(b, `{"task":`...), t, history), '}')
}

func (f *form) stream(c *call, params []byte) (*sseStream, error) {
	p, err := c.readOfficialSend(params, f.push)
	if err != nil {
		return nil, err
	}
	t, events, err := c.s.Tasks.Stream(c, c.to, p.request, c.s.idle())
	if err != nil {
		return nil, p.asSent(err)
	}
	return f.show(c, &t, events, p.history)
}

func (f *form) subscribe(c *call, params []byte) (*sseStream, error) {
	id, _, err := c.readIDs(params, "id", nil)
	if err != nil {
		return nil, err
	}
	after, resume, err := c.lastEventID()
	if err != nil {
		return nil, err
	}
	t, events, err := c.followOfficial(id, after, resume)
	if err != nil {
		return nil, err
	}
	if resume {
		// The client continues where it was cut off, and does not need the task again.
		st := f.events(&t, events)
		st.known, st.follows = after, true
		return st, nil
	}
	st, err := f.show(c, &t, events, wire.AllHistory)
	if err == nil {
		st.follows = true
	}
	return st, err
}

// show streams a task and then its events.
func (f *form) show(c *call, t *task.Task, events eventSeq, history int) (*sseStream, error) {
	st := f.events(t, events)
	encode := func(t *task.Task) []byte { return f.appendTask(room(nil, t), t, history) }
	if len(t.History) > 0 && t.Size <= smallTask { // a new task, whose content is complete
		st.first = &stream.Encoding{Text: encode(t), Seq: t.Seq, Over: t.State.Terminal()}
		return st, nil
	}
	first, done, err := c.s.Tasks.EncodeTask(c, t, f.name+"/"+strconv.Itoa(history), encode)
	if err != nil {
		drop(events)
		return nil, err
	}
	st.first, st.firstDone, st.known = &first, done, first.Seq
	return st, nil
}

// smallTask is the size up to which each reader encodes a task itself.
const smallTask = 8 << 10

// events streams the events of a task.
func (f *form) events(t *task.Task, events eventSeq) *sseStream {
	t = names(t)
	return &sseStream{
		task: t, events: events, known: t.Seq, form: f.name,
		encode: func(b []byte, e *task.Event) (_ []byte, show, last bool) {
			last = e.Kind == task.StatusEvent && e.State.Rests()
			return f.event(b, t, e, last), true, last
		},
	}
}

// names returns the task without its content, to encode its events with.
func names(t *task.Task) *task.Task {
	n := *t
	n.History, n.Artifacts, n.Message, n.Metadata = nil, nil, nil, nil
	return &n
}

// room grows b for the encoding of a task, so that a large one is not copied while it grows.
func room(b []byte, t *task.Task) []byte {
	if t.Size > smallTask && (len(t.Artifacts) > 0 || len(t.History) > 0) {
		return slices.Grow(b, int(t.Size+t.Size/16)+4096)
	}
	return b
}

func (f *form) get(c *call, params, out []byte) ([]byte, error) {
	id, history, err := c.readIDs(params, "id", nil)
	if err != nil {
		return out, err
	}
	t, err := c.s.Tasks.Get(c, c.to, id, task.Content{History: history > 0, Artifacts: true})
	if err != nil {
		return out, err
	}
	return f.task(room(out, &t), &t, history), nil
}

func (f *form) cancel(c *call, params, out []byte) ([]byte, error) {
	id, history, err := c.readIDs(params, "id", func(r *wire.Reader, name string) bool {
		if name == "metadata" {
			r.RawObject()
			return true
		}
		return false
	})
	if err != nil {
		return out, err
	}
	t, err := c.s.Tasks.Cancel(c, c.to, id, task.Content{History: history > 0, Artifacts: true})
	if err != nil {
		return out, err
	}
	return f.task(room(out, &t), &t, history), nil
}
