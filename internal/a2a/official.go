package a2a

import (
	"math"
	"strconv"
	"time"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/text"
	"github.com/parley-dev/parley/internal/wire"
)

// blockFor is how long a call of the official protocol waits for its task to rest before it returns
// the task as it is. Clients do not keep a connection open forever.
const blockFor = 60 * time.Second

// glance is how long a call of version 0.3 waits that does not set blocking. A quick result is
// better than a running task, but clients of this version expect to get a task that still runs.
const glance = time.Second

// officialSend is the request of SendMessage and message/send.
type officialSend struct {
	request dispatch.SendRequest
	history int           // number of messages of the history in the response
	wait    time.Duration // for the task to rest
}

// readOfficialSend reads the params of either version; they differ in few names.
func (c *call) readOfficialSend(params []byte, form task.PushForm) (p officialSend, err error) {
	p.history, p.wait = wire.AllHistory, blockFor
	if form == task.PushV03 {
		p.wait = glance
	}
	var message, twice bool
	fields := wire.Read(orEmpty(params), false, func(r *wire.Reader) {
		r.Object(func(name []byte) bool {
			switch string(name) {
			case "message", "request": // "request" in the proto of version 0.3
				if string(name) == "request" && form != task.PushV03 {
					return false
				}
				if twice = message; twice {
					return false
				}
				message = true
				p.readMessage(r)
			case "configuration":
				p.readConfiguration(r)
			case "metadata":
				readMetadata(r, &p.request)
			case "tenant":
				c.readTenant(r)
			default:
				return false
			}
			return true
		})
		switch {
		case twice:
			r.Add([]errs.Field{mistake("is another name for message; send only one of them", "request")})
		case message:
			r.Add(p.lacks(form))
		default:
			r.Add([]errs.Field{mistake("is required", "message")})
		}
	})
	if p.request.Push != nil {
		p.request.Push.Form = form
	}
	return p, invalid(fields)
}

// lacks returns what is missing or wrong in a message from a client.
func (p *officialSend) lacks(form task.PushForm) []errs.Field {
	switch m := &p.request.Message; {
	case m.ID == "":
		return []errs.Field{mistake("is required", "message", "messageId")}
	case m.Role != task.RoleUser:
		msg := "must be " + userRole(form) + "; clients cannot send messages as the agent"
		return []errs.Field{mistake(msg, "message", "role")}
	}
	return nil
}

func userRole(form task.PushForm) string {
	if form == task.PushV1 {
		return "ROLE_USER"
	}
	return "user"
}

func (p *officialSend) readMessage(r *wire.Reader) {
	r.Message(&p.request.Message, func(name []byte) bool {
		switch string(name) {
		case "contextId", "context_id":
			r.String(&p.request.ContextID)
		case "taskId", "task_id":
			// ProtoJSON may send an empty string for no id.
			p.request.MustExist = r.String(&p.request.ID) && p.request.ID != ""
		case "content": // the name of the parts in the gRPC and REST forms of version 0.3
			p.request.Message.Parts = r.Content()
		default:
			return false
		}
		return true
	})
}

func (p *officialSend) readConfiguration(r *wire.Reader) {
	block := func(yes bool) {
		if p.wait = 0; yes {
			p.wait = blockFor
		}
	}
	r.Object(func(name []byte) bool {
		switch string(name) {
		case "acceptedOutputModes", "accepted_output_modes":
			r.Array(math.MaxInt, func(int) {
				var mode string
				if r.String(&mode) {
					p.request.OutputModes = addMode(p.request.OutputModes, mode)
				}
			})
		case "historyLength", "history_length":
			r.Int(&p.history, 0, maxHistory)
		case "returnImmediately", "return_immediately":
			var now bool
			r.Bool(&now)
			block(!now)
		case "blocking":
			var yes bool
			r.Bool(&yes)
			block(yes)
		case "taskPushNotificationConfig", "task_push_notification_config",
			"pushNotificationConfig", "push_notification_config",
			"pushNotification", "push_notification":
			p.request.Push = &task.PushConfig{}
			readPushConfig(r, p.request.Push, nil)
		default:
			return false
		}
		return true
	})
}

// keptModes returns the accepted media types that a task keeps. They are a hint for the worker, so
// a list that is too long is cut and an invalid entry is dropped; they never cause a message to be
// refused.
func keptModes(modes []string) (kept []string) {
	for _, mode := range modes {
		kept = addMode(kept, mode)
	}
	return kept
}

func addMode(kept []string, mode string) []string {
	if len(kept) == task.MaxIDs || mode == "" || len(mode) > task.MaxID ||
		(text.Rule{Form: text.Plain}).Check(mode) != "" {
		return kept
	}
	return append(kept, mode)
}

// readPushConfig reads a push configuration of either version. Members that only one method has are
// passed to more, which may be nil.
func readPushConfig(r *wire.Reader, p *task.PushConfig, more func(name []byte) bool) {
	r.Object(func(name []byte) bool {
		switch string(name) {
		case "id":
			r.String(&p.ID)
		case "url":
			r.String(&p.URL)
		case "token":
			r.String(&p.Token)
		case "authentication":
			readPushAuth(r, p)
		default:
			return more != nil && more(name)
		}
		return true
	})
}

func readPushAuth(r *wire.Reader, p *task.PushConfig) {
	r.Object(func(name []byte) bool {
		switch string(name) {
		case "scheme":
			r.String(&p.Scheme)
		case "schemes": // version 0.3 has a list; the first one is used
			if list := r.Strings(); len(list) > 0 {
				p.Scheme = list[0]
			}
		case "credentials":
			r.String(&p.Credentials)
		default:
			return false
		}
		return true
	})
}

// readTenant refuses a tenant that is not the agent of the URL.
func (c *call) readTenant(r *wire.Reader) {
	var tenant string
	if r.String(&tenant) && tenant != "" && tenant != c.agent {
		r.Fail("must be the agent of the URL, or be left out")
	}
}

// sendOfficial sends and, unless the client declines, waits.
func (c *call) sendOfficial(p *officialSend) (task.Task, error) {
	p.request.Show = task.Content{History: p.history > 0, Artifacts: true}
	wait := time.Duration(0)
	if p.wait > 0 && c.s.Tasks.Expected(c, c.to) {
		wait = c.allowWait(min(p.wait, c.blocks()))
	}
	r := p.request
	p.request.Message = task.Message{} // it may be large, and is not needed while the agent works
	t, err := c.send(r, wait)
	return t, p.asSent(err)
}

// blocks returns how long the request may still wait, for all items of a batch together.
func (c *call) blocks() time.Duration {
	if c.blockUntil.IsZero() {
		c.blockUntil = time.Now().Add(c.s.BlockFor)
	}
	return max(0, time.Until(c.blockUntil))
}

// followOfficial returns the task and its events from now on or, if the client resumes, after the
// event that it saw last.
func (c *call) followOfficial(id string, after int64, resume bool) (task.Task, eventSeq, error) {
	if !resume {
		after = dispatch.FromNow
	}
	t, events, err := c.s.Tasks.Follow(c, c.to, id, after, c.s.idle())
	if err == nil && t.State.Terminal() && (!resume || after >= t.Seq) {
		err = newError(codeUnsupported, "the task is "+string(t.State)+" and has no more events; use GetTask")
	}
	return t, events, err
}

// isReply reports whether the task is to be returned as a message: the agent wants that, and the
// client does not know of a task yet.
func (p *officialSend) isReply(t *task.Task) bool {
	return t.Reply && t.Message != nil && t.State == task.Completed && !p.request.MustExist
}

// readIDs reads params that consist of ids and a history length. The task's id is named taskId
// where id has another meaning.
func (c *call) readIDs(
	params []byte, idName string, more func(r *wire.Reader, name string) bool,
) (id string, history int, err error) {
	history = wire.AllHistory
	fields := wire.Read(orEmpty(params), false, func(r *wire.Reader) {
		r.Object(func(name []byte) bool {
			switch s := string(name); s {
			case idName, snake(idName):
				r.String(&id)
			case "historyLength", "history_length":
				r.Int(&history, 0, maxHistory)
			case "tenant":
				c.readTenant(r)
			default:
				return more != nil && more(r, s)
			}
			return true
		})
		if id == "" {
			r.Add([]errs.Field{mistake("is required", idName)})
		}
	})
	return id, history, invalid(fields)
}

// snake returns the snake_case spelling of a name, which ProtoJSON also allows.
func snake(name string) string {
	b := make([]byte, 0, len(name)+4)
	for i := range len(name) {
		if c := name[i]; 'A' <= c && c <= 'Z' {
			b = append(b, '_', c+'a'-'A')
		} else {
			b = append(b, c)
		}
	}
	return string(b)
}

// lastEventID returns the event that the client saw last. ok is false if it sent none.
func (c *call) lastEventID() (after int64, ok bool, err error) {
	v := c.r.Header.Get("Last-Event-ID")
	if v == "" {
		return 0, false, nil
	}
	n, bad := strconv.ParseUint(v, 10, 62) // the number of the next event must fit too
	if bad != nil {
		return 0, false, newError(codeInvalidParams, "Last-Event-ID must be the id of an event of this task")
	}
	return int64(n), true, nil
}

// mistake is an invalid field of the params.
func mistake(msg string, path ...any) errs.Field { return errs.Field{Path: path, Message: msg} }
