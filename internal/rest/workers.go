package rest

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/wire"
)

const (
	claimPath = "/api/v1/agents/{agent}/claim"
	leasePath = "/api/v1/agents/{agent}/leases/{lease}"

	// maxReport leaves room for 4 MiB of parts and the overhead of JSON.
	maxReport = 6 << 20
)

// WorkPath is the path of worker operations.
type WorkPath struct {
	Agent string `path:"agent" pattern:"^[a-z0-9][a-z0-9._-]{0,63}$" doc:"Agent to work for." example:"scout"`
}

// LeasePath is the path of one lease.
type LeasePath struct {
	WorkPath
	Lease string `path:"lease" pattern:"^lease-[0-9a-z]+-[0-9a-z]+$" maxLength:"256" doc:"Lease of a claim." example:"lease-01k5xb7d2n8f4j6s0a9g3r5w1c-01k5xb7e3p9g5k7t1b0h4s6x2d"`
}

func (a *api) registerWorkers() {
	const scope = " Requires svc:a2a:serve; principals other than the agent itself also require agent:<id> or agent:*."
	register(a, operation{
		id: "claim-tasks", method: http.MethodPost, path: claimPath, tag: tagWorkers, worker: true,
		summary: "Claim tasks",
		description: "A long poll: returns as soon as there is a task or a direct message, and an empty claim after the " +
			"wait. The worker holds a task until its lease expires. Then another worker gets it; after the last attempt, the " +
			"third unless its policy says otherwise, the task fails. Messages are redelivered until a later claim acknowledges them." + scope,
	}, a.claim)
	register(a, operation{
		id: "report-task", method: http.MethodPost, path: leasePath, tag: tagWorkers, worker: true, maxBody: maxReport,
		summary: "Report on a task", errors: []int{http.StatusConflict},
		description: "Adds artifacts, sets the status, or extends the lease; an empty object returns the current state. " +
			"409 task.lease_stale if the lease is over: nothing was changed, so drop the work." + scope,
	}, a.report)
	register(a, operation{
		id: "return-task", method: http.MethodDelete, path: leasePath, tag: tagWorkers, worker: true, status: http.StatusNoContent,
		summary: "Return a task to the queue", errors: []int{http.StatusConflict},
		description: "The task is queued again at once, and the attempt does not count." + scope,
	}, a.handBack)
	a.registerExchange(scope)
	// The response of a claim is encoded by hand, so its schema is set by hand.
	ok := a.huma.OpenAPI().Paths[claimPath].Post.Responses["200"]
	ok.Content = map[string]*huma.MediaType{"application/json": {Schema: schemaOf[Claim](a)}}
}

type claimInput struct {
	WorkPath
	Body payload[ClaimRequest]
}

type claimOutput struct {
	Body func(huma.Context)
}

func (a *api) claim(ctx context.Context, c *call, in *claimInput) (*claimOutput, error) {
	if err := refuseKey(c.request, "claims"); err != nil {
		return nil, err
	}
	req := in.Body.value.request(ctx)
	if err := in.Body.check(req.Validate()); err != nil {
		return nil, err
	}
	if err := a.parkClaim(ctx, &req); err != nil {
		return nil, err
	}
	return &claimOutput{Body: func(hc huma.Context) {
		r, w := humago.Unwrap(hc)
		var got dispatch.Claim
		closed, err := a.await(ctx, w, r, in.Agent, req.Wait, func(ctx context.Context) (err error) {
			got, err = a.workers.Claim(ctx, c.post, req)
			return err
		})
		if err != nil {
			httpx.WriteError(w, r, err)
			a.takeBack(ctx, c.post, &got)
			return
		}
		sent := a.sendClaim(ctx, w, &got, func() []byte { return appendClaim(nil, &got) })
		a.settle(ctx, c.post, &got, sent, closed, req.Lease)
	}}, nil
}

// refuseKey refuses an Idempotency-Key.
func refuseKey(r *http.Request, operations string) error {
	if len(r.Header.Values(idempotencyHeader)) == 0 {
		return nil
	}
	return httpx.InvalidParts(httpx.Part{
		In: httpx.Header, Name: idempotencyHeader,
		Message: "is not supported by " + operations + ": if the response is lost, send the request again; claimed tasks " +
			"return when their lease expires",
	})
}

func (b *ClaimRequest) request(ctx context.Context) dispatch.ClaimRequest {
	return dispatch.ClaimRequest{
		Worker: or(b.Worker, httpx.CallerOf(ctx).Ref()), Max: or(b.Max, 1), Wait: seconds(or(b.WaitSeconds, 20)),
		Lease: seconds(or(b.LeaseSeconds, int(task.DefaultLease/time.Second))), Capacity: or(b.Capacity, 1), Ack: b.Ack,
	}
}

// parkClaim parks the request of a claim that may wait.
func (a *api) parkClaim(ctx context.Context, req *dispatch.ClaimRequest) error {
	if req.Wait <= 0 {
		return nil
	}
	req.Waiting = func() { a.router.Yield(ctx) }
	return a.router.Park(ctx, httpx.Wait)
}

// await runs a claim that may wait for work. It ends the wait when the caller may no longer work for
// the agent, or is gone. closed reports whether the client closed the connection or its sending
// side.
func (a *api) await(
	ctx context.Context, w http.ResponseWriter, r *http.Request, agent string, most time.Duration,
	claim func(context.Context) error,
) (closed bool, err error) {
	httpx.AllowWait(w, most)
	wait, stop := a.router.WhileAllowed(ctx, r, func(ctx context.Context, caller *identity.Caller) error {
		_, err := a.workers.Serve(ctx, caller, agent)
		return err
	})
	defer stop()
	err = claim(wait)
	closed = httpx.ClientClosed(ctx)
	switch cause := context.Cause(wait); {
	case cause != nil && cause != context.Canceled:
		return closed, cause // the caller may no longer work for the agent
	case errors.Is(err, context.Canceled):
		return closed, nil // the client may have closed only its sending side; the claim is empty
	}
	return closed, err
}

// settle takes back tasks that did not reach the worker.
func (a *api) settle(
	ctx context.Context, p dispatch.Post, c *dispatch.Claim, sent error, closed bool, lease time.Duration,
) {
	if sent == nil && (!closed || len(c.Assignments) == 0 || httpx.Received(ctx, lease)) {
		return
	}
	a.takeBack(ctx, p, c)
}

// takeBack puts the tasks of a claim back into the queue, so that they do not lose an attempt.
func (a *api) takeBack(ctx context.Context, p dispatch.Post, c *dispatch.Claim) {
	for _, as := range c.Assignments {
		_ = a.workers.Return(ctx, p, as.Lease.Token) // if this fails, the lease expires
	}
}

// writeWork sends the response to a claim. From then on the worker holds the tasks, even if the
// client closes its connection at once, as many do.
func writeWork(w http.ResponseWriter, body []byte) error {
	h := w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	if _, err := w.Write(body); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}

type reportInput struct {
	LeasePath
	ReportOnceHeader
	Body payload[WorkReport]
}

type reportOutput struct {
	Replayed string `header:"Idempotency-Replayed" doc:"true if an earlier request with the same key was carried out."`
	Body     WorkProgress
}

func (a *api) report(ctx context.Context, c *call, in *reportInput) (*reportOutput, error) {
	r, wrong := in.Body.value.report()
	if err := in.Body.check(nil, wrong...); err != nil {
		return nil, err
	}
	ctx, once, err := c.begin(ctx, &in.Body.value)
	if err != nil {
		return nil, err
	}
	ctx, span := a.startReport(ctx, &r)
	p, err := a.workers.Report(ctx, c.post, in.Lease, r)
	endReport(span, &p, err)
	if err != nil {
		return nil, asReported(err)
	}
	return &reportOutput{Replayed: replayed(once.Replayed()), Body: progressOf(&p)}, nil
}

// report decodes the message and the artifacts with package wire, and lists their errors.
func (b *WorkReport) report() (task.Report, []errs.Field) {
	r := task.Report{State: task.State(deref(b.Status)), Reply: or(b.Reply, false), Seen: b.Seen}
	if b.ExtendSeconds != nil {
		r.Extend = seconds(*b.ExtendSeconds)
		if r.Extend == 0 {
			r.Extend = -1 // invalid, because 0 would mean "do not extend"
		}
	}
	var wrong []errs.Field
	if b.Message != nil {
		r.Message = &task.Message{Role: task.RoleAgent}
		wrong = errs.Under(wire.Read(b.Message, true, func(d *wire.Reader) { d.Message(r.Message, nil) }), "message")
	}
	if b.Artifacts != nil {
		read := wire.Read(b.Artifacts, true, func(d *wire.Reader) {
			d.Array(dispatch.MaxClaim, func(int) {
				r.Artifacts = append(r.Artifacts, task.ArtifactUpdate{})
				d.ArtifactUpdate(&r.Artifacts[len(r.Artifacts)-1])
			})
		})
		wrong = append(wrong, errs.Under(read, "artifacts")...)
	}
	if r.Message != nil && r.Message.Role != task.RoleAgent && len(wrong) == 0 {
		wrong = append(wrong, errs.Field{Path: errs.At("message", "role"), Message: "must be agent"})
	}
	if b.Status != nil && *b.Status == "" {
		wrong = append(wrong, notEmpty("status", b.Status)...)
	}
	return r, wrong
}

// asReported spells the fields of messages and artifacts as in a report.
func asReported(err error) error {
	var e *errs.Error
	if !errors.As(err, &e) || len(e.Fields) == 0 {
		return err
	}
	return e.Spelled(func(f errs.Field) errs.Field {
		f.Path = wire.Spell(f.Path)
		return f
	})
}

type returnInput struct{ LeasePath }

func (a *api) handBack(ctx context.Context, c *call, in *returnInput) (*struct{}, error) {
	return nil, a.workers.Return(ctx, c.post, in.Lease)
}

// seconds converts a number of seconds. It clamps values far out of bounds, so that they do not
// overflow into the valid range.
func seconds(n int) time.Duration {
	return time.Duration(min(max(n, -1), 1_000_000)) * time.Second
}

func or[T any](v *T, def T) T {
	if v == nil {
		return def
	}
	return *v
}
