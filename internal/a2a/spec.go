package a2a

import (
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/wire"
)

// specDialect is the form of section 4.7 of the specification, which is also the first version of
// A2A.
var specDialect = dialect{
	"tasks/send":          {call: specSend},
	"tasks/get":           {call: specGet},
	"tasks/cancel":        {call: specCancel},
	"tasks/sendSubscribe": {stream: specSendSubscribe},
	"tasks/resubscribe":   {stream: specResubscribe, eventErrors: true},
	"message/send":        {call: specMessage},
}

func specSend(c *call, params, out []byte) ([]byte, error) {
	p, err := readSend(params)
	if err != nil {
		return out, err
	}
	p.request.Show = task.Content{History: p.history > 0, Artifacts: true}
	t, err := c.send(p.request, c.wait())
	if err != nil {
		return out, err
	}
	return appendTask(out, &t, p.history), nil
}

// specGet returns the whole history by default, as clients of version 0.3 expect.
func specGet(c *call, params, out []byte) ([]byte, error) {
	p, err := readTaskID(params)
	if err != nil {
		return out, err
	}
	if p.history < 0 {
		p.history = wire.AllHistory
	}
	t, err := c.s.Tasks.Get(c, c.to, p.id, task.Content{History: p.history > 0, Artifacts: true})
	if err != nil {
		return out, err
	}
	return appendTask(room(out, &t), &t, p.history), nil
}

func specCancel(c *call, params, out []byte) ([]byte, error) {
	p, err := readTaskID(params)
	if err != nil {
		return out, err
	}
	t, err := c.s.Tasks.Cancel(c, c.to, p.id, task.Content{History: p.history > 0, Artifacts: true})
	if err != nil {
		return out, err
	}
	return appendTask(out, &t, p.history), nil
}

func specSendSubscribe(c *call, params []byte) (*sseStream, error) {
	p, err := readSend(params)
	if err != nil {
		return nil, err
	}
	t, events, err := c.s.Tasks.Stream(c, c.to, p.request, c.s.idle())
	if err != nil {
		return nil, err
	}
	return &sseStream{task: names(&t), events: events, form: "spec", encode: eventsOf(&t)}, nil
}

func specResubscribe(c *call, params []byte) (*sseStream, error) {
	p, err := readTaskID(params)
	if err != nil {
		return nil, err
	}
	after, _, err := c.lastEventID()
	if err != nil {
		return nil, err
	}
	t, events, err := c.s.Tasks.Follow(c, c.to, p.id, after, c.s.idle())
	if err != nil {
		return nil, err
	}
	return &sseStream{task: names(&t), events: events, form: "spec", encode: eventsOf(&t), follows: true}, nil
}

// specMessage is a direct message: it is not tracked and cannot be queried later. With a messageId
// or a kind it is a call of version 0.3 of the official protocol, which returns a task.
func specMessage(c *call, params, out []byte) ([]byte, error) {
	if isOfficial(params) {
		return v03Form.send(c, params, out)
	}
	p, err := readSend(params)
	if err != nil {
		return out, err
	}
	m, err := c.s.Tasks.Message(c, c.to, p.request.Message)
	if err != nil {
		return out, err
	}
	out = append(out, `{"kind":"ack","id":`...)
	out = wire.AppendString(out, m.ID)
	return append(out, `,"accepted":true}`...), nil
}

// sendParams are the params of tasks/send and similar methods.
type sendParams struct {
	request dispatch.SendRequest
	history int // number of messages of the history in the response; negative: no history
}

func readSend(params []byte) (p sendParams, err error) {
	p.history = -1
	var inner string // a context inside the message, as in the newer protocol
	var message bool
	m := &p.request.Message
	fields := wire.Read(orEmpty(params), false, func(r *wire.Reader) {
		r.Object(func(name []byte) bool {
			switch string(name) {
			case "id", "taskId", "task_id":
				readID(r, &p.request.ID)
			case "message":
				message = true
				r.Message(m, func(name []byte) bool {
					known := string(name) == "contextId" || string(name) == "context_id"
					if known {
						r.String(&inner)
					}
					return known
				})
			case "contextId", "context_id", "sessionId", "session_id":
				r.String(&p.request.ContextID)
			case "metadata":
				readMetadata(r, &p.request)
			case "historyLength", "history_length":
				r.Int(&p.history, 0, maxHistory)
			default:
				return false
			}
			return true
		})
		switch {
		case r.Failed():
		case !message:
			r.Add([]errs.Field{{Path: errs.At("message"), Message: "is required"}})
		case m.Role == "":
			m.Role = task.RoleUser
		case m.Role != task.RoleUser:
			r.Add([]errs.Field{{
				Path: errs.At("message", "role"), Message: "must be user; clients cannot send messages as the agent",
			}})
		}
	})
	if p.request.ContextID == "" {
		p.request.ContextID = inner
	}
	return p, invalid(fields)
}

// readMetadata reads the metadata of a send, and what it says about the task.
func readMetadata(r *wire.Reader, to *dispatch.SendRequest) {
	to.Metadata = r.RawObject()
	r.Add(setPolicy(to))
}

// setPolicy reads the policy in the metadata of a send.
func setPolicy(to *dispatch.SendRequest) (fields []errs.Field) {
	to.Policy, fields = wire.ReadPolicy(to.Metadata)
	return errs.Under(fields, "metadata")
}

// maxHistory is far more than a task can have.
const maxHistory = 1_000_000

type idParams struct {
	id      string
	history int
}

func readTaskID(params []byte) (p idParams, err error) {
	p.history = -1
	fields := wire.Read(orEmpty(params), false, func(r *wire.Reader) {
		r.Object(func(name []byte) bool {
			switch string(name) {
			case "id", "taskId", "task_id":
				readID(r, &p.id)
			case "historyLength", "history_length":
				r.Int(&p.history, 0, maxHistory)
			default:
				return false
			}
			return true
		})
		if p.id == "" {
			r.Add([]errs.Field{{Path: errs.At("id"), Message: "is required"}})
		}
	})
	return p, invalid(fields)
}

func readID(r *wire.Reader, id *string) {
	if r.String(id) && *id == "" {
		r.Fail("must not be empty")
	}
}

func orEmpty(params []byte) []byte {
	if params == nil {
		return []byte("{}")
	}
	return params
}

// noFields is the start of a list of invalid fields.
var noFields []errs.Field

// isOfficial reports whether the params of a message/send are those of version 0.3: a message with
// an id, or members that only they have.
func isOfficial(params []byte) (yes bool) {
	_ = wire.Read(orEmpty(params), false, func(r *wire.Reader) {
		r.Object(func(name []byte) bool {
			switch string(name) {
			case "configuration":
				yes = true
			case "message":
				r.Object(func(name []byte) bool {
					switch string(name) {
					case "messageId", "message_id", "kind":
						yes = true
					}
					return false
				})
				return true
			}
			return false
		})
	})
	return yes
}

func invalid(fields []errs.Field) error {
	if len(fields) == 0 {
		return nil
	}
	return &badParams{errs.InvalidFields(fields...)}
}
