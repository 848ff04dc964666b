package rest

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/wire"
)

// WorkExchangeRequest is the body of an exchange.
type WorkExchangeRequest struct {
	Reports workReports `json:"reports,omitempty" doc:"Reports on tasks, in order; at most 100."`
	Claim   workClaim   `json:"claim,omitempty" doc:"Claim of further tasks; none if left out."`
}

// WorkExchangeReport is one report of an exchange.
type WorkExchangeReport struct {
	Lease       string     `json:"lease" pattern:"^lease-[0-9a-z]+-[0-9a-z]+$" maxLength:"256" doc:"Lease of the task." example:"lease-01k5xb7d2n8f4j6s0a9g3r5w1c-01k5xb7e3p9g5k7t1b0h4s6x2d"`
	Report      workReport `json:"report,omitempty" doc:"The report; an empty one returns the current state."`
	Traceparent string     `json:"traceparent,omitempty" doc:"Trace that the report belongs to (W3C Trace Context)." example:"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"`
	Tracestate  string     `json:"tracestate,omitempty" doc:"The tracestate that belongs to traceparent." example:"vendor=value"`
}

// WorkExchange is the response to an exchange.
type WorkExchange struct {
	Reports      []WorkResult    `json:"reports" nullable:"false" doc:"One result for each report, in the same order."`
	Tasks        []ClaimedTask   `json:"tasks" nullable:"false" doc:"Claimed tasks."`
	Messages     []DirectMessage `json:"messages" nullable:"false" doc:"Direct messages to the agent, oldest first."`
	ClaimProblem *httpx.Problem  `json:"claim_problem,omitempty" doc:"Why nothing was claimed, although the reports were carried out."`
}

// WorkResult is the result of one report of an exchange.
type WorkResult struct {
	Lease    string         `json:"lease" doc:"Lease of the report." example:"lease-01k5xb7d2n8f4j6s0a9g3r5w1c-01k5xb7e3p9g5k7t1b0h4s6x2d"`
	Progress *WorkProgress  `json:"progress,omitempty" doc:"State of the task; absent if the report failed."`
	Problem  *httpx.Problem `json:"problem,omitempty" doc:"Why the report failed: the response that report-task would give."`
}

// The parts of an exchange are decoded one by one, so that an invalid one does not affect the
// others.
type (
	workReports jsontext.Value
	workReport  jsontext.Value
	workClaim   jsontext.Value
)

// UnmarshalJSON keeps the raw JSON.
func (v *workReports) UnmarshalJSON(b []byte) error { return keepRaw((*[]byte)(v), b) }

// UnmarshalJSON keeps the raw JSON.
func (v *workReport) UnmarshalJSON(b []byte) error { return keepRaw((*[]byte)(v), b) }

// UnmarshalJSON keeps the raw JSON.
func (v *workClaim) UnmarshalJSON(b []byte) error { return keepRaw((*[]byte)(v), b) }

func keepRaw(to *[]byte, b []byte) error {
	*to = append((*to)[:0], b...)
	return nil
}

func (workReports) Schema(r huma.Registry) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeArray, Items: r.Schema(reflect.TypeFor[WorkExchangeReport](), true, "")}
	items(0, dispatch.MaxReports)(s)
	return s
}

func (workReport) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[WorkReport](), true, "")
}

func (workClaim) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[ClaimRequest](), true, "")
}

// items returns the raw reports, or what is wrong with the list.
func (v workReports) items() (out []jsontext.Value, wrong string) {
	if v == nil {
		return nil, ""
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(v))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '[' {
		return nil, "must be an array of reports"
	}
	for dec.PeekKind() != ']' {
		item, err := dec.ReadValue()
		if err != nil {
			return nil, "must be an array of reports"
		}
		if len(out) == dispatch.MaxReports {
			return nil, fmt.Sprintf("must have at most %d entries", dispatch.MaxReports)
		}
		end := int(dec.InputOffset())
		out = append(out, jsontext.Value(v[end-len(item):end])) // item itself is overwritten by the next one
	}
	return out, ""
}

// appendExchange encodes a WorkExchange. It is written by hand because every task passes here.
func appendExchange(ctx context.Context, sent []sentReport, e *dispatch.Exchanged) []byte {
	b := append([]byte(nil), `{"reports":[`...)
	for i := range e.Results {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendResult(ctx, b, &sent[i], &e.Results[i])
	}
	b = append(b, `],`...)
	b = append(b, appendClaim(nil, &e.Claim)[1:]...) // the members of a claim
	if e.Err != nil {
		b = append(b[:len(b)-1], `,"claim_problem":`...)
		b = append(appendProblem(ctx, b, worded(http.MethodPost, e.Err)), '}')
	}
	return b
}

func appendResult(ctx context.Context, b []byte, sent *sentReport, r *dispatch.ReportResult) []byte {
	b = appendText(b, `{"lease":`, sent.Lease)
	if r.Err != nil {
		err := r.Err
		if sent.Err == nil {
			err = asExchanged(err)
		}
		return append(appendProblem(ctx, append(b, `,"problem":`...), err), '}')
	}
	p := &r.Progress
	b = appendText(b, `,"progress":{"state":`, string(p.State))
	b = strconv.AppendBool(append(b, `,"canceled":`...), p.Canceled)
	b = append(b, `,"lease_expires_at":`...)
	if p.ExpiresAt.IsZero() {
		b = append(b, "null"...)
	} else {
		b = wire.AppendTime(b, p.ExpiresAt)
	}
	b = wire.AppendWorkMessages(append(b, `,"messages":`...), p.Turns)
	b = strconv.AppendInt(append(b, `,"seen":`...), p.Seen, 10)
	b = strconv.AppendBool(append(b, `,"more":`...), p.More)
	return append(b, "}}"...)
}

func appendProblem(ctx context.Context, b []byte, err error) []byte {
	buf := bytes.NewBuffer(b)
	_ = httpx.WriteJSON(buf, httpx.NewProblem(ctx, err)) // into memory
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}
