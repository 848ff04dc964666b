package wire

import "github.com/parley-dev/parley/internal/task"

// Push returns the header and body of a push, in the form of its configuration: the event alone or,
// in form 0.3, the whole task after it.
func Push(p *task.PushConfig, t *task.Task, e *task.Event) (header map[string]string, body []byte) {
	header = map[string]string{}
	if p.Form == task.PushV03 {
		header["Content-Type"] = "application/json"
		body = AppendV03Task(nil, t, AllHistory)
	} else {
		header["Content-Type"] = "application/a2a+json"
		body = AppendV1Event(nil, t, e)
	}
	if p.Token != "" {
		header["X-A2A-Notification-Token"] = p.Token
	}
	return header, body
}
