package a2a

import (
	"strconv"
	"strings"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/wire"
)

// v1Dialect is version 1.0 of the official protocol.
var v1Dialect = dialect{
	"SendMessage":                      {call: v1Form.send, official: true},
	"SendStreamingMessage":             {stream: v1Form.stream, official: true},
	"GetTask":                          {call: v1Form.get, official: true},
	"ListTasks":                        {call: v1List, official: true},
	"CancelTask":                       {call: v1Form.cancel, official: true},
	"SubscribeToTask":                  {stream: v1Form.subscribe, official: true},
	"CreateTaskPushNotificationConfig": {call: v1SetPush, official: true},
	"GetTaskPushNotificationConfig":    {call: v1GetPush, official: true},
	"ListTaskPushNotificationConfigs":  {call: v1ListPush, official: true},
	"DeleteTaskPushNotificationConfig": {call: v1DeletePush, official: true},
	"GetExtendedAgentCard":             {call: v1Card, official: true},
}

func v1List(c *call, params, out []byte) ([]byte, error) {
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
		out = wire.AppendV1TaskWith(out, &page.Tasks[i], history, r.Artifacts)
	}
	out = append(out, `],"nextPageToken":`...)
	out = wire.AppendString(out, page.Next)
	out = append(out, `,"pageSize":`...)
	out = strconv.AppendInt(out, int64(page.Limit), 10)
	out = append(out, `,"totalSize":`...)
	out = strconv.AppendInt(out, page.Total, 10)
	return append(out, '}'), nil
}

// readList reads the filters of a list, and the number of messages per task in the response.
func (c *call) readList(params []byte) (r dispatch.OwnRequest, history int, err error) {
	fields := wire.Read(orEmpty(params), false, func(d *wire.Reader) {
		d.Object(func(name []byte) bool {
			switch string(name) {
			case "tenant":
				c.readTenant(d)
			case "contextId", "context_id":
				d.String(&r.ContextID)
			case "status":
				readV1State(d, &r.State)
			case "pageSize", "page_size":
				d.Int(&r.Limit, 0, dispatch.MaxLimit) // the SDK for Go sends 0 if unset
			case "pageToken", "page_token":
				d.String(&r.Cursor)
			case "historyLength", "history_length":
				d.Int(&history, 0, maxHistory)
			case "statusTimestampAfter", "status_timestamp_after",
				"lastUpdatedAfter", "last_updated_after", // 0.3
				"lastUpdatedTime", "last_updated_time": // the proto of 0.3
				readTime(d, &r.UpdatedAfter)
			case "includeArtifacts", "include_artifacts":
				d.Bool(&r.Artifacts)
			default:
				return false
			}
			return true
		})
	})
	r.History = history > 0
	return r, history, invalid(fields)
}

// readV1State reads a state in the spelling of version 1.0 or of the others.
func readV1State(r *wire.Reader, dst *task.State) {
	var s string
	if !r.Enum(&s, a2apb.TaskState_name) || s == "" || s == "TASK_STATE_UNSPECIFIED" {
		return
	}
	for _, st := range task.States {
		if s == wire.V1State(st) || strings.EqualFold(s, string(st)) ||
			s == "TASK_STATE_CANCELLED" && st == task.Canceled {
			*dst = st
			return
		}
	}
	r.Fail("must be a state, such as " + wire.V1State(task.Working))
}

func readTime(r *wire.Reader, dst *time.Time) {
	var s string
	if !r.String(&s) {
		return
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		r.Fail("must be a time, such as 2026-03-02T10:00:00Z")
		return
	}
	*dst = t
}

func v1SetPush(c *call, params, out []byte) ([]byte, error) {
	p := task.PushConfig{Form: task.PushV1}
	fields := wire.Read(orEmpty(params), false, func(r *wire.Reader) {
		readPushConfig(r, &p, func(name []byte) bool {
			switch string(name) {
			case "tenant":
				c.readTenant(r)
			case "taskId", "task_id":
				r.String(&p.TaskID)
			case "configId", "config_id":
				r.String(&p.ID)
			case "config", "pushNotificationConfig", "push_notification_config": // in drafts of 1.0
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
	p, err := c.s.Tasks.SetPush(c, c.to, p.TaskID, p)
	if err != nil {
		return out, err
	}
	return appendJSON(out, v1PushOf(&p)), nil
}

// readPushID reads the params that name one push configuration.
func (c *call) readPushID(params []byte) (taskID, id string, err error) {
	taskID, _, err = c.readIDs(params, "taskId", func(r *wire.Reader, name string) bool {
		if name == "id" || name == "configId" || name == "config_id" {
			return r.String(&id)
		}
		return false
	})
	if err == nil && id == "" {
		err = invalid(append(noFields, mistake("is required", "id")))
	}
	return taskID, id, err
}

func v1GetPush(c *call, params, out []byte) ([]byte, error) {
	taskID, id, err := c.readPushID(params)
	if err != nil {
		return out, err
	}
	p, err := c.s.Tasks.GetPush(c, c.to, taskID, id)
	if err != nil {
		return out, err
	}
	return appendJSON(out, v1PushOf(&p)), nil
}

// readPushList reads the task whose configurations are listed.
func (c *call) readPushList(params []byte) (taskID string, err error) {
	taskID, _, err = c.readIDs(params, "taskId", func(r *wire.Reader, name string) bool {
		switch name {
		case "pageSize", "page_size": // a task has few configurations, which are one page
			var n int
			r.Int(&n, 0, maxHistory)
		case "pageToken", "page_token":
			var s string
			if r.String(&s) && s != "" {
				r.Fail("must be empty: the list has one page")
			}
		default:
			return false
		}
		return true
	})
	return taskID, err
}

func v1ListPush(c *call, params, out []byte) ([]byte, error) {
	taskID, err := c.readPushList(params)
	if err != nil {
		return out, err
	}
	list, err := c.s.Tasks.ListPush(c, c.to, taskID)
	if err != nil {
		return out, err
	}
	return appendJSON(out, v1PushList{Configs: each(list, v1PushOf)}), nil
}

func v1DeletePush(c *call, params, out []byte) ([]byte, error) {
	taskID, id, err := c.readPushID(params)
	if err != nil {
		return out, err
	}
	return append(out, "{}"...), c.s.Tasks.DeletePush(c, c.to, taskID, id)
}

func v1Card(c *call, params, out []byte) ([]byte, error) {
	fields := wire.Read(orEmpty(params), false, func(r *wire.Reader) {
		r.Object(func(name []byte) bool {
			if string(name) == "tenant" {
				c.readTenant(r)
				return true
			}
			return false
		})
	})
	if err := invalid(fields); err != nil {
		return out, err
	}
	return c.s.appendAgentCard(c, out, formFor(c.r, version1, true))
}
