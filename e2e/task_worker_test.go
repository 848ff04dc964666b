package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"
)

// hand is a worker of an agent in plain HTTP.
type hand struct {
	base  string
	key   string
	agent string
	name  string
}

// work is a task as a claim returns it.
type work struct {
	ID      string `json:"id"`
	Lease   string `json:"lease"`
	Attempt int    `json:"attempt"`
	Message struct {
		Parts []struct{ Text string }
	} `json:"message"`
	History []struct{ Role string } `json:"history"`
}

func (w work) text() string {
	if len(w.Message.Parts) == 0 {
		return ""
	}
	return w.Message.Parts[0].Text
}

// turns counts the messages of the sender.
func (w work) turns() (n int) {
	for _, m := range w.History {
		if m.Role == "user" {
			n++
		}
	}
	return n
}

// claim waits for tasks.
func (h hand) claim(ctx context.Context, most, waitSeconds, leaseSeconds int) ([]work, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(waitSeconds+30)*time.Second)
	defer cancel()
	var out struct{ Tasks []work }
	status, err := h.do(ctx, http.MethodPost, "/claim", object{
		"worker": h.name, "max": most, "wait_seconds": waitSeconds, "lease_seconds": leaseSeconds, "capacity": 100,
	}, &out)
	if err == nil && status != http.StatusOK {
		err = unexpected{fmt.Sprintf("claim: %d", status)}
	}
	return out.Tasks, err
}

// progress is the response to a report.
type progress struct {
	State    string
	Canceled bool
	Code     string // of a refusal
}

// report reports on a task; a stale lease is a response, not an error.
func (h hand) report(ctx context.Context, lease string, body object) (progress, int, error) {
	var out progress
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	status, err := h.do(ctx, http.MethodPost, "/leases/"+lease, body, &out)
	if err == nil && status != http.StatusOK && (status != http.StatusConflict || out.Code != "task.lease_stale") {
		err = unexpected{fmt.Sprintf("report %v: %d %+v", body, status, out)}
	}
	return out, status, err
}

// giveBack returns a task to the queue.
func (h hand) giveBack(ctx context.Context, lease string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	status, err := h.do(ctx, http.MethodDelete, "/leases/"+lease, nil, nil)
	if err == nil && status != http.StatusNoContent && status != http.StatusConflict {
		err = unexpected{fmt.Sprintf("hand back: %d", status)}
	}
	return status, err
}

func (h hand) do(ctx context.Context, method, path string, body, into any) (int, error) {
	url := h.base + "/api/v1/agents/" + h.agent + path
	var res *http.Response
	var err error
	if method == http.MethodPost {
		res, err = post(ctx, url, h.key, body)
	} else {
		var req *http.Request
		if req, err = http.NewRequestWithContext(ctx, method, url, nil); err == nil {
			req.Header.Set("Authorization", "Bearer "+h.key)
			res, err = taskClient.Do(req)
		}
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil || into == nil {
		return res.StatusCode, err
	}
	return res.StatusCode, json.Unmarshal(b, into)
}

// artifact returns an artifact with a single text part.
func artifact(name, say string) object {
	return object{"name": name, "parts": []object{{"type": "text", "text": say}}}
}

// says returns a message of the agent.
func says(s string) object { return object{"parts": []object{{"type": "text", "text": s}}} }

// taskOrg is an org with an agent, its worker's key and a sender.
type taskOrg struct {
	server *server
	org    string
	agent  string
	worker string // a key
	sender string // a key that reaches every agent
}

func newTaskOrg(t *testing.T, s *server, org string) *taskOrg {
	t.Helper()
	o := &taskOrg{server: s, org: org, agent: "bot-" + org}
	s.cli(t, "org", "create", org)
	s.cli(t, "agent", "create", o.agent, "--org", org, "--name", "Bot")
	s.cli(t, "service", "create", "partner", "--org", org)
	o.worker = s.newKey(t, org, "agent:"+o.agent, "svc:a2a:serve")
	o.sender = s.newKey(t, org, "service:partner", "svc:a2a:write")
	return o
}

func (o *taskOrg) peer() peer { return peer{base: o.server.base, key: o.sender} }

func (o *taskOrg) hand() hand {
	return hand{base: o.server.base, key: o.worker, agent: o.agent, name: "hand"}
}

// take claims one task, waiting for it.
func (h hand) take(t *testing.T, leaseSeconds int) work {
	t.Helper()
	var got []work
	eventually(t, time.Minute, "a task to claim", func() bool {
		var err error
		if got, err = h.claim(t.Context(), 1, 10, leaseSeconds); err != nil {
			t.Fatal(err)
		}
		return len(got) == 1
	})
	return got[0]
}
