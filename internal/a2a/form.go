package a2a

import (
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/wire"
)

// form is how one version and binding of the official protocol writes tasks. What
// is done for a request is the same in all of them.
type form struct {
	push    task.PushForm
	wrapped bool // a task and a message stand in an object that says which it is
	task    func(b []byte, t *task.Task, history int) []byte
	reply   func(b []byte, t *task.Task) []byte
	event   func(b []byte, t *task.Task, e *task.Event, last bool) []byte
}

var (
	v1Form = &form{
		push: task.PushV1, wrapped: true, task: wire.AppendV1Task, reply: wire.AppendV1Reply,
		event: func(b []byte, t *task.Task, e *task.Event, _ bool) []byte { return wire.AppendV1Event(b, t, e) },
	}
	v03Form = &form{push: task.PushV03, task: wire.AppendV03Task, reply: wire.AppendV03Reply, event: wire.AppendV03Event}
	// v03ProtoForm is that of version 0.3's HTTP+JSON binding.
	v03ProtoForm = &form{
		push: task.PushV03, wrapped: true, task: wire.AppendV03ProtoTask, reply: wire.AppendV03ProtoReply, event: wire.AppendV03ProtoEvent,
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
		return f.appendTask(out, &t, p.history), nil
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

func (f *form) stream(c *call, params []byte) (*stream, error) {
	p, err := c.readOfficialSend(params, f.push)
	if err != nil {
		return nil, err
	}
	t, events, err := c.s.Tasks.Stream(c, c.to, p.request, c.s.idle())
	if err != nil {
		return nil, err
	}
	return f.events(t, events, p.history), nil
}

func (f *form) subscribe(c *call, params []byte) (*stream, error) {
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
	st := f.events(t, events, wire.AllHistory)
	if resume {
		// The client goes on where it was cut off, and needs no task to begin with.
		st.first, st.known = nil, after
	}
	return st, nil
}

// events shows a task and then what happens to it.
func (f *form) events(t task.Task, events eventSeq, history int) *stream {
	return &stream{
		events: events, known: t.Seq, over: t.State.Terminal(),
		first: func(b []byte) []byte { return f.appendTask(b, &t, history) },
		encode: func(b []byte, e *task.Event) (_ []byte, show, last bool) {
			last = e.Kind == task.StatusEvent && e.State.Rests()
			return f.event(b, &t, e, last), true, last
		},
	}
}

func (f *form) get(c *call, params, out []byte) ([]byte, error) {
	id, history, err := c.readIDs(params, "id", nil)
	if err != nil {
		return out, err
	}
	t, err := c.s.Tasks.Get(c, c.to, id)
	if err != nil {
		return out, err
	}
	return f.task(out, &t, history), nil
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
	t, err := c.s.Tasks.Cancel(c, c.to, id)
	if err != nil {
		return out, err
	}
	return f.task(out, &t, history), nil
}
