package rest

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/wire"
)

const (
	orgTasksPath = "/api/v1/orgs/{org}/a2a/tasks"
	orgTaskPath  = orgTasksPath + "/{id}"
)

func (a *api) registerOrgTasks() {
	register(a, operation{
		id: "list-a2a-tasks", method: http.MethodGet, path: orgTasksPath, tag: tagA2ATasks,
		summary: "List the tasks of the org's agents", action: identity.ReadTasks,
		description: "Newest first, of all senders. Requires svc:admin:admin.",
	}, a.listOrgTasks)
	register(a, operation{
		id: "get-a2a-task", method: http.MethodGet, path: orgTaskPath, tag: tagA2ATasks,
		summary: "Get a task of the org's agents", action: identity.ReadTasks, validID: task.ValidUID,
		description: "With its messages and artifacts. Requires svc:admin:admin.",
	}, a.getOrgTask)
}

type listOrgTasksInput struct {
	OrgPath
	Agent     string          `query:"agent" pattern:"^[a-z0-9][a-z0-9._-]{0,63}$" doc:"Filter by agent." example:"scout"`
	State     taskStateFilter `query:"state" doc:"Filter by state."`
	ContextID contextID       `query:"context_id" doc:"Filter by context."`
	Cursor    string          `query:"cursor" doc:"Cursor: next_cursor of the previous page."`
	Limit     a2aLimit        `query:"limit" doc:"Page size."`
}

type (
	contextID       string
	taskStateFilter string
	a2aLimit        int
)

func (contextID) Schema(huma.Registry) *huma.Schema {
	return stringSchema(length(1, task.MaxID), matching(idText))
}

func (taskStateFilter) Schema(huma.Registry) *huma.Schema { return stringSchema(oneOf(task.States)) }

func (a2aLimit) Schema(huma.Registry) *huma.Schema {
	return integer(1, dispatch.MaxLimit, dispatch.DefaultLimit)
}

type listOrgTasksOutput struct{ Body OrgTaskList }

func (a *api) listOrgTasks(ctx context.Context, c *call, in *listOrgTasksInput) (*listOrgTasksOutput, error) {
	limit := int(in.Limit)
	if limit == 0 {
		limit = dispatch.DefaultLimit
	}
	f := dispatch.Filter{
		Agent: in.Agent, State: task.State(in.State), ContextID: string(in.ContextID), Before: in.Cursor, Limit: limit + 1,
	}
	if err := f.Validate(); err != nil {
		return nil, err
	}
	list, err := a.tasks.OrgTasks(ctx, c.Access, f)
	if err != nil {
		return nil, err
	}
	out := &listOrgTasksOutput{}
	if len(list) > limit {
		list = list[:limit]
		out.Body.NextCursor = &list[limit-1].UID
	}
	out.Body.Tasks = make([]OrgTask, len(list))
	for i := range list {
		out.Body.Tasks[i] = orgTaskOf(&list[i])
	}
	return out, nil
}

type getOrgTaskInput struct {
	OrgPath
	ID string `path:"id" pattern:"^[0-9a-z]{1,64}$" doc:"The task's uid." example:"01k5xb7d2n8f4j6s0a9g3r5w1c"`
}

type getOrgTaskOutput struct{ Body OrgTaskDetail }

func (a *api) getOrgTask(ctx context.Context, c *call, in *getOrgTaskInput) (*getOrgTaskOutput, error) {
	t, err := a.tasks.OrgTask(ctx, c.Access, in.ID)
	if err != nil {
		return nil, err
	}
	out := &getOrgTaskOutput{Body: OrgTaskDetail{OrgTask: orgTaskOf(&t)}}
	out.Body.StatusMessage = []byte("null")
	if t.Message != nil {
		out.Body.StatusMessage = wire.AppendMessage(nil, t.Message)
	}
	out.Body.History = wire.AppendMessages(nil, t.History)
	out.Body.Artifacts = wire.AppendArtifacts(nil, t.Artifacts)
	return out, nil
}
