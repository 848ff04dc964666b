package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

const work = "/api/v1/agents/fixer/work"

type exchanged struct {
	claimed
	Reports []struct {
		Lease    string
		Progress *struct {
			State    string
			Messages []json.RawMessage
		}
		Problem *struct {
			Status int
			Code   string
			Errors []struct{ Pointer string }
		}
	}
	ClaimProblem *struct{ Code string } `json:"claim_problem"`
}

func (w *world) exchange(secret, body string) exchanged {
	w.tb.Helper()
	var e exchanged
	w.do(secret, "POST", work, body).want(200).into(&e)
	return e
}

func (e *exchanged) outcomes() (out []string) {
	for _, r := range e.Reports {
		if r.Problem == nil {
			out = append(out, r.Progress.State)
			continue
		}
		s := r.Problem.Code
		for _, f := range r.Problem.Errors {
			s += " " + f.Pointer
		}
		out = append(out, s)
	}
	return out
}

func TestAnExchangeReportsAndClaims(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	worker := w.worker()
	for i := range 5 {
		w.send("ada", fmt.Sprintf("t-%d", i), "hello")
	}
	first := w.exchange(worker, `{"claim":{"max":3}}`)
	if len(first.Tasks) != 3 || len(first.Reports) != 0 || len(first.Tasks[0].History) != 1 {
		t.Fatalf("got %+v, want 3 tasks with their history", first)
	}
	report := func(i int, report string) string {
		return fmt.Sprintf(`{"lease":%q,"report":%s}`, first.Tasks[i].Lease, report)
	}
	const completed = `{"status":"completed","artifacts":[{"name":"r","parts":[{"type":"text","text":"done"}]}]}`
	body := `{"reports":[` + strings.Join([]string{
		report(0, completed),
		report(1, `{"status":"nonsense","extra":1}`),
		report(2, `{"status":"input-required","message":{"parts":[{"text":"which?"}]}}`),
		`{"lease":"lease-x-y","report":{"status":"completed"}}`,
		`{"lease":7}`,
		`"no report"`,
		report(1, `{"status":"working","message":{"parts":[]}}`),
	}, ",") + `],"claim":{"max":5,"wait_seconds":60}}`
	second := w.exchange(worker, body)
	want := []string{
		"completed", "request.invalid /report/extra", "input-required", task.CodeStaleLease,
		"request.invalid /lease", "request.invalid ", "request.invalid /report/message/parts",
	}
	if diff := cmp.Diff(want, second.outcomes()); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
	if len(second.Tasks) != 2 || second.ClaimProblem != nil {
		t.Errorf("got %d tasks and problem %+v, want the other 2", len(second.Tasks), second.ClaimProblem)
	}
	done, err := w.store.Tasks().ByUID(context.Background(), "acme", first.Tasks[0].ID, task.All)
	if err != nil || done.State != task.Completed || len(done.Artifacts) != 1 {
		t.Errorf("got %+v, %v, want it completed with one artifact", done, err)
	}
	// The response was lost: the same reports have the same results, and change nothing.
	again := w.exchange(worker, body)
	if diff := cmp.Diff(want, again.outcomes()); diff != "" {
		t.Errorf("mismatch after a repetition (-want +got):\n%s", diff)
	}
	other := w.exchange(worker, `{"reports":[`+report(0, `{"status":"completed"}`)+`,`+report(0, `{"status":"failed"}`)+`]}`)
	if diff := cmp.Diff([]string{task.CodeStaleLease, task.CodeStaleLease}, other.outcomes()); diff != "" {
		t.Errorf("mismatch of other reports under the same leases (-want +got):\n%s", diff)
	}
}

func TestReportsOfOneTaskInAnExchangeAreCarriedOutInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	worker := w.worker()
	w.send("ada", "t-1", "hello")
	lease := w.exchange(worker, `{"claim":{}}`).Tasks[0].Lease
	item := func(report string) string { return fmt.Sprintf(`{"lease":%q,"report":%s}`, lease, report) }
	large := strings.Repeat("x", 100<<10)
	got := w.exchange(worker, `{"reports":[`+strings.Join([]string{
		item(`{"artifacts":[{"artifact_id":"a","parts":[{"text":"1"}]}]}`),
		item(`{"artifacts":[{"artifact_id":"a","append":true,"parts":[{"text":"` + large + `"}]}]}`),
		item(`{"artifacts":[{"artifact_id":"a","append":true,"parts":[{"text":"3"}]}]}`),
		item(`{"status":"completed"}`),
		item(`{"status":"failed"}`),
	}, ",")+`]}`)
	want := []string{"working", "working", "working", "completed", task.CodeStaleLease}
	if diff := cmp.Diff(want, got.outcomes()); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
	uid := strings.Split(lease, "-")[1]
	done, err := w.store.Tasks().ByUID(context.Background(), "acme", uid, task.All)
	if err != nil || len(done.Artifacts) != 1 || len(done.Artifacts[0].Parts) != 3 {
		t.Fatalf("got %+v, %v, want one artifact with three parts", done, err)
	}
	if first, last := done.Artifacts[0].Parts[0].Text, done.Artifacts[0].Parts[2].Text; first != "1" || last != "3" {
		t.Errorf("got parts %s … %s, want 1 … 3", first, last)
	}
}

func TestAnExchangeIsRefusedLikeAClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	worker := w.worker()
	w.do("", "POST", work, `{}`).want(401)
	w.do(w.key("acme", "user:ada", identity.TasksRead), "POST", work, `{}`).want(403)
	w.do(w.key("acme", "agent:fixer", identity.A2AServe), "POST", "/api/v1/agents/nope/work", `{}`).want(403)
	w.do(worker, "POST", work, `{}`, "Idempotency-Key", "k").want(422)
	many := strings.Repeat(`{},`, 100) + `{}`
	for body, want := range map[string]string{
		`{"reports":{}}`:                   "/reports",
		`{"reports":[` + many + `]}`:       "/reports",
		`{"claim":{"max":101}}`:            "/claim/max",
		`{"claim":{"wait_seconds":"x"}}`:   "/claim/wait_seconds",
		`{"claim":[]}`:                     "/claim",
		`{"claims":{}}`:                    "/claims",
		`{"claim":{"worker":"a\u0000b"}}`:  "/claim/worker",
		`{"reports":[{}],"claim":{"x":1}}`: "/claim/x",
	} {
		p := w.do(worker, "POST", work, body).want(422).problem()
		if len(p.Errors) != 1 || p.Errors[0].Pointer == nil || *p.Errors[0].Pointer != want {
			t.Errorf("%.40s: got %+v, want an error at %s", body, p.Errors, want)
		}
	}
	if e := w.exchange(worker, `{}`); len(e.Tasks)+len(e.Reports)+len(e.Messages) != 0 {
		t.Errorf("got %+v, want nothing", e)
	}
}

// The reports are carried out, although the worker may not claim.
func TestAnExchangeKeepsReportsIfTheClaimFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	worker := w.worker()
	w.send("ada", "t-1", "hello")
	lease := w.exchange(worker, `{"claim":{}}`).Tasks[0].Lease
	e := w.exchange(worker, fmt.Sprintf(
		`{"reports":[{"lease":%q,"report":{"status":"completed"}}],"claim":{"worker":"server:x"}}`, lease))
	if len(e.Reports) != 1 || e.Reports[0].Problem != nil || e.ClaimProblem == nil {
		t.Fatalf("got %+v, want a report that succeeded and a claim that failed", e)
	}
}
