package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/trace"
)

// sendClaim sends the response to a claim, which body encodes. If spans are exported, each task of the claim gets one in the task's trace,
// linked to that of the claim's request, and the worker gets this span. Otherwise it gets the one that
// the sender sent.
func (a *api) sendClaim(ctx context.Context, w http.ResponseWriter, c *dispatch.Claim, body func() []byte) error {
	if a.tracer == nil {
		return writeWork(w, body())
	}
	spans := make([]trace.Span, len(c.Assignments))
	for i := range c.Assignments {
		as := &c.Assignments[i]
		_, span := a.tracer.StartIn(ctx, trace.FromString(as.Task.Trace), trace.Internal, "task.claim",
			trace.String("parley.org", as.Task.Org), trace.String("parley.agent", as.Task.Agent),
			trace.String("parley.task", as.Task.UID), trace.Int("parley.attempt", as.Number),
			trace.Int("parley.task_age_ms", int(time.Since(as.Task.CreatedAt).Milliseconds())))
		spans[i], as.Task.Trace = span, span.Context().String()
	}
	err := writeWork(w, body())
	for _, span := range spans {
		if err != nil {
			span.Fail("the worker did not get the task")
		}
		span.End()
	}
	return err
}

// startReport starts the span of a report.
func (a *api) startReport(ctx context.Context, r *task.Report) (context.Context, trace.Span) {
	if a.tracer == nil || isHeartbeat(r) {
		return ctx, trace.Span{}
	}
	return a.tracer.Start(ctx, trace.Internal, "task.report", reportAttrs(r)...)
}

// endReport ends the span of a report. Its link leads to the task also if the worker did not send the
// trace that it got.
func endReport(span trace.Span, p *dispatch.Progress, err error) {
	if !span.On() {
		return
	}
	span.Link(trace.FromString(p.Trace))
	if err != nil && errs.KindOf(err) == errs.Internal {
		span.Fail("the report failed")
	}
	span.End()
}
