package rest

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

const (
	orgPushesPath  = "/api/v1/orgs/{org}/a2a/push"
	taskPushesPath = orgTaskPath + "/push"
	pushRetryPath  = taskPushesPath + "/{push}/retry"
)

func (a *api) registerOrgPushes() {
	register(a, operation{
		id: "list-push-configs", method: http.MethodGet, path: orgPushesPath, tag: tagA2ATasks,
		summary: "List the push configurations of all tasks", action: identity.ReadTasks,
		description: "Sorted by task, newest first; `state=dead` lists those that were given up. Tokens, credentials and " +
			"paths are not shown. Requires svc:admin:admin.",
	}, a.listOrgPushes)
	register(a, operation{
		id: "list-task-push-configs", method: http.MethodGet, path: taskPushesPath, tag: tagA2ATasks,
		summary: "List the push configurations of a task", action: identity.ReadTasks, validID: task.ValidUID,
		description: "With the progress of each. Tokens, credentials and paths are not shown. Requires svc:admin:admin.",
	}, a.listTaskPushes)
	register(a, operation{
		id: "retry-push-config", method: http.MethodPost, path: pushRetryPath, tag: tagA2ATasks,
		summary: "Resume a push configuration that was given up", action: identity.ManageAgents, validID: task.ValidUID,
		errors: []int{http.StatusConflict},
		description: "Continues with the event that could not be delivered; no event is lost. " +
			"409 task.push_not_dead if it was not given up. Requires svc:admin:admin.",
	}, a.retryPush)
}

type pushStateFilter string

func (pushStateFilter) Schema(huma.Registry) *huma.Schema {
	return stringSchema(oneOf(delivery.States))
}

type listOrgPushesInput struct {
	OrgPath
	State  pushStateFilter `query:"state" doc:"Filter by state."`
	Cursor string          `query:"cursor" doc:"Cursor: next_cursor of the previous page."`
	Limit  a2aLimit        `query:"limit" doc:"Page size."`
}

type listOrgPushesOutput struct{ Body PushConfigPage }

func (a *api) listOrgPushes(ctx context.Context, c *call, in *listOrgPushesInput) (*listOrgPushesOutput, error) {
	f := dispatch.PushFilter{State: delivery.State(in.State), Limit: int(in.Limit) + 1}
	if in.Limit == 0 {
		f.Limit = dispatch.DefaultLimit + 1
	}
	if in.Cursor != "" && !f.Continue(in.Cursor) {
		return nil, errs.InvalidFields(badCursor)
	}
	list, err := a.tasks.OrgPushes(ctx, c.Access, f)
	if err != nil {
		return nil, err
	}
	out := &listOrgPushesOutput{}
	if n := f.Limit - 1; len(list) > n {
		list = list[:n]
		next := f.Cursor(&list[n-1])
		out.Body.NextCursor = &next
	}
	out.Body.Configs = pushConfigsOf(list)
	return out, nil
}

type listTaskPushesInput struct {
	OrgPath
	ID string `path:"id" pattern:"^[0-9a-z]{1,64}$" doc:"The task's uid." example:"01k5xb7d2n8f4j6s0a9g3r5w1c"`
}

type listTaskPushesOutput struct{ Body PushConfigList }

func (a *api) listTaskPushes(ctx context.Context, c *call, in *listTaskPushesInput) (*listTaskPushesOutput, error) {
	list, err := a.tasks.OrgTaskPushes(ctx, c.Access, in.ID)
	if err != nil {
		return nil, err
	}
	return &listTaskPushesOutput{Body: PushConfigList{Configs: pushConfigsOf(list)}}, nil
}

type retryPushInput struct {
	OrgPath
	ID   string `path:"id" pattern:"^[0-9a-z]{1,64}$" doc:"The task's uid." example:"01k5xb7d2n8f4j6s0a9g3r5w1c"`
	Push string `path:"push" maxLength:"256" doc:"The configuration's id." example:"push-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	OnceHeader
}

type retryPushOutput struct {
	Replayed string `header:"Idempotency-Replayed" doc:"true if an earlier request with the same key was carried out."`
	Body     PushConfig
}

func (a *api) retryPush(ctx context.Context, c *call, in *retryPushInput) (*retryPushOutput, error) {
	ctx, once, err := c.begin(ctx, struct{}{})
	if err != nil {
		return nil, err
	}
	p, err := a.tasks.RetryPush(ctx, c.Access, in.ID, in.Push)
	if err != nil {
		return nil, err
	}
	return &retryPushOutput{Replayed: replayed(once.Replayed()), Body: pushConfigOf(&p)}, nil
}
