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

// blockFor is how long a call of the official protocol waits for its task to rest
// before it answers with the task as it is: no client keeps a connection for ever.
const blockFor = 60 * time.Second

// glance is how long a call of version 0.3 waits that does not say whether it
// wants to: a quick answer is worth more than a promise, but its clients expect to
// get hold of a task that is still running.
const glance = time.Second

// officialSend is what SendMessage and message/send ask for.
type officialSend struct {
	request dispatch.SendRequest
	history int           // how many messages of the history to show
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
			case "message", "request": // the latter in the proto of version 0.3
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
				p.request.Metadata = r.RawObject()
			case "tenant":
				c.readTenant(r)
			default:
				return false
			}
			return true
		})
		switch {
		case twice:
			r.Add([]errs.Field{mistake("is another name of message; send one of them", "request")})
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

// lacks names what a message of a client must have, and this one has not.
func (p *officialSend) lacks(form task.PushForm) []errs.Field {
	switch m := &p.request.Message; {
	case m.ID == "":
		return []errs.Field{mistake("is required", "message", "messageId")}
	case m.Role != task.RoleUser:
		return []errs.Field{mistake("must be "+userRole(form)+": the agent speaks for itself", "message", "role")}
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
			// An empty one is ProtoJSON's way to say that there is none.
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
		case "taskPushNotificationConfig", "task_push_notification_config", "pushNotificationConfig", "push_notification_config",
			"pushNotification", "push_notification":
			p.request.Push = &task.PushConfig{}
			readPushConfig(r, p.request.Push, nil)
		default:
			return false
		}
		return true
	})
}

// keptModes are the media types that a task keeps of those that the sender accepts. They are
// a hint for the worker, so a list that is too long is cut and an entry that cannot be kept
// is left out: no message is refused because of them.
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

// readPushConfig reads where to push, in the form of either version. Members that
// only one method has are offered to more, which may be nil.
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
		case "schemes": // version 0.3 names several; the first one is used
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

// readTenant refuses a tenant that is not the agent of the address.
func (c *call) readTenant(r *wire.Reader) {
	var tenant string
	if r.String(&tenant) && tenant != "" && tenant != c.agent {
		r.Fail("must be the agent of the address, or be left out")
	}
}

// sendOfficial sends and, unless told otherwise, waits.
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

// blocks is how long the request may still wait, all items of a batch together.
func (c *call) blocks() time.Duration {
	if c.blockUntil.IsZero() {
		c.blockUntil = time.Now().Add(c.s.BlockFor)
	}
	return max(0, time.Until(c.blockUntil))
}

// followOfficial is how a task stands, and what happens to it from now on or, if
// the client resumes, after the event that it saw last.
func (c *call) followOfficial(id string, after int64, resume bool) (task.Task, eventSeq, error) {
	if !resume {
		after = dispatch.FromNow
	}
	t, events, err := c.s.Tasks.Follow(c, c.to, id, after, c.s.idle())
	if err == nil && t.State.Terminal() && (!resume || after >= t.Seq) {
		err = newError(codeUnsupported, "the task is "+string(t.State)+": nothing will happen to it; use GetTask")
	}
	return t, events, err
}

// isReply reports whether the task is to be shown as a message: the agent wants it
// so, and the client knows of no task yet.
func (p *officialSend) isReply(t *task.Task) bool {
	return t.Reply && t.Message != nil && t.State == task.Completed && !p.request.MustExist
}

// readIDs reads params that consist of ids and a length of history. The task's id
// is named taskId where id names something else.
func (c *call) readIDs(params []byte, idName string, more func(r *wire.Reader, name string) bool) (id string, history int, err error) {
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

// snake is the name of a member in the other spelling that ProtoJSON allows.
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

// lastEventID is the event that the client saw last; ok is false if it names none.
func (c *call) lastEventID() (after int64, ok bool, err error) {
	v := c.r.Header.Get("Last-Event-ID")
	if v == "" {
		return 0, false, nil
	}
	n, bad := strconv.ParseUint(v, 10, 62) // the next event's number must still be one
	if bad != nil {
		return 0, false, newError(codeInvalidParams, "Last-Event-ID must be the id of an event of this task")
	}
	return int64(n), true, nil
}

// mistake is one in the params, at the path that its names make.
func mistake(msg string, path ...any) errs.Field { return errs.Field{Path: path, Message: msg} }
