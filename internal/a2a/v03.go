package a2a

import (
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/wire"
)

// v03Dialect is version 0.3 of the official protocol, except for the methods that it shares with
// the specification's dialect: tasks/get, tasks/cancel and tasks/resubscribe return a form that
// serves both, and message/send is recognized by its messageId (see specMessage).
var v03Dialect = dialect{
	"message/stream":                      {stream: v03Form.stream, eventErrors: true},
	"tasks/pushNotificationConfig/set":    {call: v03SetPush},
	"tasks/pushNotificationConfig/get":    {call: v03GetPush},
	"tasks/pushNotificationConfig/list":   {call: v03ListPush},
	"tasks/pushNotificationConfig/delete": {call: v03DeletePush},
	"agent/getAuthenticatedExtendedCard":  {call: v03Card},
}

func v03SetPush(c *call, params, out []byte) ([]byte, error) {
	p := task.PushConfig{Form: task.PushV03}
	fields := wire.Read(orEmpty(params), false, func(r *wire.Reader) {
		r.Object(func(name []byte) bool {
			switch string(name) {
			case "taskId", "task_id":
				r.String(&p.TaskID)
			case "pushNotificationConfig", "push_notification_config":
				readPushConfig(r, &p, nil)
			default:
				return false
			}
			return true
		})
		requireTask(r, p.TaskID)
	})
	if err := invalid(fields); err != nil {
		return out, err
	}
	if p.ID == "" {
		p.ID = p.TaskID // as in the SDKs of 0.3: a task has one configuration unless they have ids
	}
	p, err := c.s.Tasks.SetPush(c, c.to, p.TaskID, p)
	if err != nil {
		return out, err
	}
	return appendJSON(out, v03PushOf(&p)), nil
}

func requireTask(r *wire.Reader, id string) {
	if id == "" {
		r.Add([]errs.Field{mistake("is required", "taskId")})
	}
}

func v03PushID(params []byte) (taskID, id string, err error) {
	fields := wire.Read(orEmpty(params), false, func(r *wire.Reader) {
		r.Object(func(name []byte) bool {
			switch string(name) {
			case "id", "taskId", "task_id":
				r.String(&taskID)
			case "pushNotificationConfigId", "push_notification_config_id":
				r.String(&id)
			default:
				return false
			}
			return true
		})
		if taskID == "" {
			r.Add([]errs.Field{mistake("is required: the id of the task", "id")})
		}
	})
	return taskID, id, invalid(fields)
}

func v03GetPush(c *call, params, out []byte) ([]byte, error) {
	taskID, id, err := v03PushID(params)
	if err != nil {
		return out, err
	}
	if id == "" || id == "default" { // the configuration that was set without an id
		id = taskID
	}
	p, err := c.s.Tasks.GetPush(c, c.to, taskID, id)
	if err != nil {
		return out, err
	}
	return appendJSON(out, v03PushOf(&p)), nil
}

func v03ListPush(c *call, params, out []byte) ([]byte, error) {
	taskID, _, err := v03PushID(params)
	if err != nil {
		return out, err
	}
	list, err := c.s.Tasks.ListPush(c, c.to, taskID)
	if err != nil {
		return out, err
	}
	return appendJSON(out, each(list, v03PushOf)), nil
}

func v03DeletePush(c *call, params, out []byte) ([]byte, error) {
	taskID, id, err := v03PushID(params)
	if err == nil && id == "" {
		err = invalid(append(noFields, mistake("is required", "pushNotificationConfigId")))
	}
	if err != nil {
		return out, err
	}
	return append(out, "null"...), c.s.Tasks.DeletePush(c, c.to, taskID, id)
}

func v03Card(c *call, _, out []byte) ([]byte, error) {
	return c.s.appendAgentCard(c, out, formFor(c.r, version03, true))
}
