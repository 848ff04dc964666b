package a2a

import (
	"cmp"
	"strings"

	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/wire"
)

// v03RESTDialect is version 0.3 in its HTTP+JSON binding: the ProtoJSON of its messages. The method
// names are Parley's; restTable maps URLs to them.
var v03RESTDialect = dialect{
	"v03/SendMessage":          {call: v03ProtoForm.send},
	"v03/SendStreamingMessage": {stream: v03ProtoForm.stream},
	"v03/GetTask":              {call: v03ProtoForm.get},
	"v03/ListTasks":            {call: v03pList},
	"v03/CancelTask":           {call: v03ProtoForm.cancel},
	"v03/SubscribeToTask":      {stream: v03ProtoForm.subscribe},
	"v03/SetPush":              {call: v03pSetPush},
	"v03/GetPush":              {call: v03pGetPush},
	"v03/ListPush":             {call: v03pListPush},
	"v03/DeletePush":           {call: v1DeletePush},
	"v03/Card":                 {call: v03pCard},
}

func v03pList(c *call, params, out []byte) ([]byte, error) {
	r, history, err := c.readList(params)
	if err != nil {
		return out, err
	}
	page, err := c.s.Tasks.Own(c, c.to, r)
	if err != nil {
		return out, err
	}
	out = append(out, `{"tasks":[`...)
	for i := range page.Tasks {
		if i > 0 {
			out = append(out, ',')
		}
		out = wire.AppendV03ProtoTaskWith(out, &page.Tasks[i], history, r.Artifacts)
	}
	out = append(out, ']')
	if page.Next != "" {
		out = append(out, `,"nextPageToken":`...)
		out = wire.AppendString(out, page.Next)
	}
	return append(out, '}'), nil
}

// v03pSetPush accepts the configuration itself, or the request around it; clients send either.
func v03pSetPush(c *call, params, out []byte) ([]byte, error) {
	p := task.PushConfig{Form: task.PushV03}
	var id string
	var member func(r *wire.Reader, name string) bool
	member = func(r *wire.Reader, name string) bool {
		switch name {
		case "config":
			return r.Object(func(name []byte) bool { return member(r, string(name)) })
		case "pushNotificationConfig", "push_notification_config":
			readPushConfig(r, &p, nil)
		case "configId", "config_id":
			r.String(&id)
		case "name":
			var name string
			if r.String(&name) && id == "" {
				_, id, _ = strings.Cut(name, "/pushNotificationConfigs/")
			}
		case "taskId", "task_id":
			r.String(&p.TaskID)
		default:
			return false
		}
		return true
	}
	fields := wire.Read(orEmpty(params), false, func(r *wire.Reader) {
		r.Object(func(name []byte) bool { return member(r, string(name)) })
		requireTask(r, p.TaskID)
	})
	if err := invalid(fields); err != nil {
		return out, err
	}
	p.ID = cmp.Or(p.ID, id, p.TaskID) // see v03SetPush
	p, err := c.s.Tasks.SetPush(c, c.to, p.TaskID, p)
	if err != nil {
		return out, err
	}
	return appendJSON(out, v03ProtoPushOf(&p)), nil
}

func v03pGetPush(c *call, params, out []byte) ([]byte, error) {
	taskID, id, err := c.readPushID(params)
	if err != nil {
		return out, err
	}
	p, err := c.s.Tasks.GetPush(c, c.to, taskID, id)
	if err != nil {
		return out, err
	}
	return appendJSON(out, v03ProtoPushOf(&p)), nil
}

func v03pListPush(c *call, params, out []byte) ([]byte, error) {
	taskID, err := c.readPushList(params)
	if err != nil {
		return out, err
	}
	list, err := c.s.Tasks.ListPush(c, c.to, taskID)
	if err != nil {
		return out, err
	}
	return appendJSON(out, v03ProtoPushList{each(list, v03ProtoPushOf)}), nil
}

// v03pCard returns the card for every version: clients of this binding read either form of its
// security schemes.
func v03pCard(c *call, _, out []byte) ([]byte, error) {
	return c.s.appendAgentCard(c, out, formFor(c.r, "", true))
}
