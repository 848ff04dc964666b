package rest

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/trace"
	"github.com/parley-dev/parley/internal/wire"
)

const workPath = "/api/v1/agents/{agent}/work"

func (a *api) registerExchange(scope string) {
	register(a, operation{
		id: "exchange-work", method: http.MethodPost, path: workPath, tag: tagWorkers, worker: true, maxBody: maxReport,
		summary: "Report on several tasks and claim the next ones",
		description: "Carries out up to 100 reports, as report-task does, and claims tasks, as claim-tasks does, in one " +
			"request. Each report has its own result, in order; one that fails does not affect the others. The claim waits " +
			"for work only if there are no reports. After a lost response send the same reports again: one that has ended " +
			"its lease with the same content succeeds again. Claimed tasks that were lost return when their lease " +
			"expires." + scope,
	}, a.exchange)
	// The response is encoded by hand, so its schema is set by hand.
	ok := a.huma.OpenAPI().Paths[workPath].Post.Responses["200"]
	ok.Content = map[string]*huma.MediaType{"application/json": {Schema: schemaOf[WorkExchange](a)}}
}

type exchangeInput struct {
	WorkPath
	Body payload[WorkExchangeRequest]
}

func (a *api) exchange(ctx context.Context, c *call, in *exchangeInput) (*claimOutput, error) {
	if err := refuseKey(c.request, "exchanges"); err != nil {
		return nil, err
	}
	reports, claim, err := in.read(ctx)
	if err != nil {
		return nil, err
	}
	req := dispatch.ClaimRequest{}
	if claim != nil {
		if len(reports) > 0 {
			claim.Wait = 0
		}
		if err := a.parkClaim(ctx, claim); err != nil {
			return nil, err
		}
		req = *claim
	}
	return &claimOutput{Body: func(hc huma.Context) {
		r, w := humago.Unwrap(hc)
		ctx, spans := a.startReports(ctx, reports)
		var got dispatch.Exchanged
		closed, err := a.await(ctx, w, r, in.Agent, req.Wait, func(ctx context.Context) (err error) {
			got, err = a.workers.Exchange(ctx, c.post, leaseReports(reports), claim)
			return err
		})
		endReports(spans, got.Results)
		if err != nil && len(got.Results) == 0 {
			httpx.WriteError(w, r, err)
			a.takeBack(ctx, c.post, &got.Claim)
			return
		}
		sent := a.sendClaim(ctx, w, &got.Claim, func() []byte { return appendExchange(ctx, reports, &got) })
		a.settle(ctx, c.post, &got.Claim, sent, closed, req.Lease)
	}}, nil
}

// sentReport is one decoded report of an exchange.
type sentReport struct {
	dispatch.LeaseReport
	trace trace.Context
}

// read decodes the body. An invalid claim, or a body that is no exchange, is an error. An invalid
// report is the result of this report only.
func (in *exchangeInput) read(ctx context.Context) ([]sentReport, *dispatch.ClaimRequest, error) {
	b := &in.Body.value
	var wrong []errs.Field
	items, message := b.Reports.items()
	if message != "" {
		wrong = append(wrong, errs.NewField("reports", message))
	}
	var claim *dispatch.ClaimRequest
	if b.Claim != nil {
		var body payload[ClaimRequest]
		body.decode(b.Claim)
		req := body.value.request(ctx)
		if err := body.check(req.Validate()); err != nil {
			wrong = append(wrong, errs.Under(errs.As(err).Fields, "claim")...)
		}
		claim = &req
	}
	if err := in.Body.check(nil, wrong...); err != nil {
		return nil, nil, err
	}
	reports := make([]sentReport, len(items))
	for i, item := range items {
		reports[i] = readReport(item)
	}
	return reports, claim, nil
}

// readReport decodes one report of an exchange. The paths of its errors begin at the item.
func readReport(item []byte) sentReport {
	var outer payload[WorkExchangeReport]
	outer.decode(item)
	b := &outer.value
	out := sentReport{LeaseReport: dispatch.LeaseReport{Lease: b.Lease}}
	out.trace = trace.Context{Parent: b.Traceparent, State: b.Tracestate}
	var wrong []errs.Field
	if !outer.flawed() && !strings.HasPrefix(b.Lease, "lease-") {
		wrong = append(wrong, errs.NewField("lease", "must be the lease of a claimed task"))
	}
	var inner payload[WorkReport]
	if b.Report != nil {
		inner.decode(b.Report)
	}
	r, broken := inner.value.report()
	if err := inner.check(nil, broken...); err != nil {
		wrong = append(wrong, errs.Under(errs.As(err).Fields, "report")...)
	}
	out.Report, out.Err = r, outer.check(nil, wrong...)
	return out
}

func leaseReports(sent []sentReport) []dispatch.LeaseReport {
	out := make([]dispatch.LeaseReport, len(sent))
	for i := range sent {
		out[i] = sent[i].LeaseReport
	}
	return out
}

// asExchanged spells the fields of an error of a report as in the item of an exchange.
func asExchanged(err error) error {
	e := &errs.Error{}
	if !errors.As(err, &e) || len(e.Fields) == 0 {
		return err
	}
	return e.Spelled(func(f errs.Field) errs.Field {
		f.Path = errs.At("report").Then(spell(wire.Spell(f.Path))...)
		return f
	})
}

// startReports starts the span of each report, in the trace that the worker sent with it.
func (a *api) startReports(ctx context.Context, reports []sentReport) (context.Context, []trace.Span) {
	if a.tracer == nil {
		return ctx, nil
	}
	spans := make([]trace.Span, len(reports))
	for i := range reports {
		if r := &reports[i].Report; !isHeartbeat(r) {
			_, spans[i] = a.tracer.StartIn(ctx, reports[i].trace, trace.Internal, "task.report", reportAttrs(r)...)
		}
	}
	return ctx, spans
}

func endReports(spans []trace.Span, results []dispatch.ReportResult) {
	for i := range spans {
		if i < len(results) {
			endReport(spans[i], &results[i].Progress, results[i].Err)
		} else {
			endReport(spans[i], &dispatch.Progress{}, nil)
		}
	}
}

func isHeartbeat(r *task.Report) bool {
	return r.State == "" && r.Message == nil && len(r.Artifacts) == 0
}

func reportAttrs(r *task.Report) []trace.Attr {
	return []trace.Attr{
		trace.String("parley.status", string(r.State)), trace.Int("parley.artifacts", len(r.Artifacts)),
	}
}
