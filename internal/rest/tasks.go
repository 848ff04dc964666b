package rest

import (
	"context"
	"net/http"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/identity"
)

const (
	tasksPath = "/api/v1/orgs/{org}/tasks"
	taskPath  = tasksPath + "/{id}"
)

// TaskPath is the path of one task.
type TaskPath struct {
	OrgPath
	ID string `path:"id" pattern:"^task-[0-9a-z]{26}$" doc:"The task's id." example:"task-01k5xb7d2n8f4j6s0a9g3r5w1c"`
}

func (a *api) registerTasks() {
	register(a, operation{
		id: "list-tasks", method: http.MethodGet, path: tasksPath, tag: tagTasks,
		summary: "List tasks", action: identity.ListFollowups, description: "Newest first. Needs svc:tasks:read.",
	}, a.listTasks)
	register(a, operation{
		id: "create-task", method: http.MethodPost, path: tasksPath, tag: tagTasks,
		summary: "Create a task by hand", action: identity.CreateFollowup, status: http.StatusCreated,
		description: "Needs svc:tasks:write; assigning it to an agent also needs svc:a2a:write that reaches the agent.",
	}, a.createTask)
	register(a, operation{
		id: "get-task", method: http.MethodGet, path: taskPath, tag: tagTasks,
		summary: "Get a task", action: identity.ReadFollowup, validID: followup.ValidID, cacheable: true, description: "Needs svc:tasks:read.",
	}, a.getTask)
	register(a, operation{
		id: "change-task", method: http.MethodPatch, path: taskPath, tag: tagTasks,
		summary: "Change a task", action: identity.ChangeFollowup, validID: followup.ValidID,
		errors:      []int{http.StatusConflict, http.StatusPreconditionFailed},
		description: "Changes the fields that are given. Needs svc:tasks:write; assigning it to an agent also needs svc:a2a:write that reaches the agent.",
	}, a.changeTask)
}

type listTasksInput struct {
	OrgPath
	Status     taskStatusFilter `query:"status" doc:"Only this status."`
	Assignee   assigneeFilter   `query:"assignee" doc:"Only this user's or agent's tasks; none: those without an assignee." example:"agent:fixer"`
	ProposalID string           `query:"proposal_id" pattern:"^[0-9A-Za-z-]{1,64}$" doc:"Only what this proposal led to." example:"prop-01k5x8r2m4v7c9w3q6z1t0h8ye"`
	Page       pageNumber       `query:"page" doc:"The number of the page; 1 if left out."`
	Limit      taskLimit        `query:"limit" doc:"Results on a page."`
}

type listTasksOutput struct {
	Link []string `header:"Link" doc:"The first, previous and next page (RFC 8288)."`
	Body TaskList
}

func (a *api) listTasks(ctx context.Context, c *call, in *listTasksInput) (*listTasksOutput, error) {
	q := followup.Query{
		Status: followup.Status(in.Status), Assignee: string(in.Assignee), ProposalID: in.ProposalID,
		Page: int(in.Page), Limit: int(in.Limit),
	}
	list, total, err := a.followups.List(ctx, c.Access, &q)
	if err != nil {
		return nil, err
	}
	out := &listTasksOutput{
		Link: links(c.request.URL, numbered(q.Page, q.Limit, len(list), total)),
		Body: TaskList{Tasks: make([]Task, len(list)), Total: total, Page: q.Page},
	}
	for i := range list {
		out.Body.Tasks[i] = taskOf(&list[i])
	}
	return out, nil
}

type createTaskInput struct {
	OrgPath
	OnceHeader
	Body payload[TaskCreation]
}

type createTaskOutput struct {
	Location string `header:"Location" doc:"Where the new task is."`
	ETag     string `header:"ETag" doc:"The version of the record."`
	Replayed string `header:"Idempotency-Replayed" doc:"true, if the request had been carried out before."`
	Body     Task
}

func (a *api) createTask(ctx context.Context, c *call, in *createTaskInput) (*createTaskOutput, error) {
	b := &in.Body.value
	cmd := followup.Creation{Title: b.Title, Description: deref(b.Description), Assignee: deref(b.Assignee)}
	if err := in.Body.check(cmd.Validate()); err != nil {
		return nil, err
	}
	var err error
	if cmd.Once, err = c.once(b); err != nil {
		return nil, err
	}
	done, err := a.followups.Create(ctx, c.Access, cmd)
	if err != nil {
		return nil, err
	}
	f := &done.Followup
	return &createTaskOutput{
		Location: c.request.URL.EscapedPath() + "/" + f.ID, ETag: taskTag(f), Replayed: replayed(done.Replayed), Body: taskOf(f),
	}, nil
}

type getTaskInput struct {
	TaskPath
	IfNoneMatch string `header:"If-None-Match" doc:"The ETag you hold: 304 if it is still right."`
}

type getTaskOutput struct {
	Status       int
	ETag         string `header:"ETag" doc:"The version of the record, for If-Match and If-None-Match."`
	CacheControl string `header:"Cache-Control" doc:"Keep it, but ask each time."`
	Body         Task
}

func (a *api) getTask(ctx context.Context, c *call, in *getTaskInput) (*getTaskOutput, error) {
	f, err := a.followups.Get(ctx, c.Access, in.ID)
	if err != nil {
		return nil, err
	}
	out := &getTaskOutput{Status: http.StatusOK, ETag: taskTag(&f), CacheControl: revalidate}
	if noneMatch(c.request.Header, out.ETag) {
		out.Status = http.StatusNotModified
		return out, nil
	}
	out.Body = taskOf(&f)
	return out, nil
}

type changeTaskInput struct {
	TaskPath
	OnceHeader
	IfMatch string `header:"If-Match" doc:"The ETag you decided on: 412 if the record has changed since."`
	Body    payload[TaskPatch]
}

type changeTaskOutput struct {
	ETag     string `header:"ETag" doc:"The new version of the record."`
	Replayed string `header:"Idempotency-Replayed" doc:"true, if the request had been carried out before."`
	Body     Task
}

func (a *api) changeTask(ctx context.Context, c *call, in *changeTaskInput) (*changeTaskOutput, error) {
	b := &in.Body.value
	cmd := followup.Edit{Title: b.Title, Description: b.Description, Status: (*followup.Status)(b.Status), Assignee: b.Assignee}
	var wrong []errs.Field
	if *b == (TaskPatch{}) && len(in.Body.broken) == 0 {
		wrong = []errs.Field{{Message: "must contain at least one of title, description, status and assignee"}}
	}
	if err := in.Body.check(cmd.Validate(), wrong...); err != nil {
		return nil, err
	}
	var err error
	if cmd.IfVersion, err = ifMatch(c.request.Header, func() (int64, error) {
		f, err := a.followups.Get(ctx, c.Access, in.ID)
		return f.Version, err
	}); err != nil {
		return nil, err
	}
	if cmd.Once, err = c.once(b); err != nil {
		return nil, err
	}
	done, err := a.followups.Change(ctx, c.Access, in.ID, cmd)
	if err != nil {
		return nil, err
	}
	return &changeTaskOutput{ETag: taskTag(&done.Followup), Replayed: replayed(done.Replayed), Body: taskOf(&done.Followup)}, nil
}

// taskTag names the bytes of a task; everyone sees the same.
func taskTag(f *followup.Followup) string { return etag(f.Version, "") }
