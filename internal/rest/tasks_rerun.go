package rest

import (
	"context"
	"net/http"
	"net/url"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

const (
	rerunPath    = "/api/v1/agents/{agent}/tasks/{id}/rerun"
	orgRerunPath = orgTaskPath + "/rerun"
)

func (a *api) registerReruns() {
	const same = "Makes a new task with the messages of the sender, the context, the metadata and the policy of the old one; " +
		"a deadline becomes the same time from now. The new task is named after the old one, with .2, .3 and so on, and its " +
		"metadata has its id as parley.dev/rerun_of. Push configurations are not copied. " +
		"409 task.not_rerunnable unless the task failed, was rejected or canceled. "
	register(a, operation{
		id: "rerun-task", method: http.MethodPost, path: rerunPath, tag: tagA2A, sender: true,
		summary: "Send a task again", status: http.StatusCreated, errors: []int{http.StatusConflict},
		description: same + "404 if the caller did not send it. Requires svc:a2a:write that includes the agent.",
	}, a.rerun)
	register(a, operation{
		id: "rerun-a2a-task", method: http.MethodPost, path: orgRerunPath, tag: tagA2ATasks,
		summary: "Send a task of any sender again", action: identity.ManageAgents, validID: task.ValidUID,
		status: http.StatusCreated, errors: []int{http.StatusConflict},
		description: same + "The new task belongs to the same sender. Requires svc:admin:admin.",
	}, a.orgRerun)
}

type rerunInput struct {
	WorkPath
	ID taskIDParam `path:"id" doc:"The sender's id of the task." example:"crm-4711"`
	OnceHeader
}

type taskIDParam string

func (taskIDParam) Schema(huma.Registry) *huma.Schema {
	return stringSchema(length(1, task.MaxID), matching(idText))
}

type rerunOutput struct {
	Location string `header:"Location" doc:"URL of the new task."`
	Replayed string `header:"Idempotency-Replayed" doc:"true if an earlier request with the same key was carried out."`
	Body     OrgTask
}

func (a *api) rerun(ctx context.Context, c *call, in *rerunInput) (*rerunOutput, error) {
	return a.rerunWith(ctx, c, func(ctx context.Context) (task.Task, error) {
		return a.tasks.Rerun(ctx, c.to, string(in.ID))
	}, func(t *task.Task) string { return "/a2a/" + t.Agent + "/tasks/" + url.PathEscape(t.ID) })
}

type orgRerunInput struct {
	OrgPath
	ID string `path:"id" pattern:"^[0-9a-z]{1,64}$" doc:"The task's uid." example:"01k5xb7d2n8f4j6s0a9g3r5w1c"`
	OnceHeader
}

func (a *api) orgRerun(ctx context.Context, c *call, in *orgRerunInput) (*rerunOutput, error) {
	return a.rerunWith(ctx, c, func(ctx context.Context) (task.Task, error) {
		return a.tasks.OrgRerun(ctx, c.Access, in.ID)
	}, func(t *task.Task) string { return "/api/v1/orgs/" + t.Org + "/a2a/tasks/" + t.UID })
}

func (a *api) rerunWith(
	ctx context.Context, c *call, rerun func(context.Context) (task.Task, error), at func(*task.Task) string,
) (*rerunOutput, error) {
	ctx, once, err := c.begin(ctx, struct{}{})
	if err != nil {
		return nil, err
	}
	t, err := rerun(ctx)
	if err != nil {
		return nil, err
	}
	return &rerunOutput{Location: at(&t), Replayed: replayed(once.Replayed()), Body: orgTaskOf(&t)}, nil
}
