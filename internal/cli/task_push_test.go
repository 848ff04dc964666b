package cli

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestPushesAreListedAndRetried(t *testing.T) {
	t.Parallel()
	const config = `{"id":"h/1","task_uid":"01k","task_id":"t-1","receiver":"https://hooks.example","form":"1.0",` +
		`"state":"dead","cursor":3,"last_event":5,"attempts":12,"last_error":"the receiver\nresponded with 500",` +
		`"last_attempt_at":null,"due_at":null,"created_at":"2026-03-02T10:00:00Z"}`
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.Method + " " + r.URL.EscapedPath() + "?" + r.URL.RawQuery {
		case "GET /api/v1/orgs/acme/a2a/tasks/01k/push?":
			_, _ = io.WriteString(w, `{"configs":[`+config+`]}`)
		case "GET /api/v1/orgs/acme/a2a/push?state=dead":
			_, _ = io.WriteString(w, `{"configs":[`+config+`],"next_cursor":"01k~h/1"}`)
		case "GET /api/v1/orgs/acme/a2a/push?":
			_, _ = io.WriteString(w, `{"configs":[],"next_cursor":null}`)
		case "POST /api/v1/orgs/acme/a2a/tasks/01k/push/h%2F1/retry?":
			_, _ = io.WriteString(w, strings.Replace(config, "dead", "active", 1))
		default:
			t.Errorf("unexpected %s %s", r.Method, r.URL)
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(ts.Close)
	run := func(args ...string) (int, string) {
		var stdout, stderr bytes.Buffer
		args = append(append([]string{"task"}, args...), "--server", ts.URL, "--key", "k", "--org", "acme")
		code := Main(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
		return code, stdout.String() + stderr.String()
	}
	for _, c := range []struct {
		args []string
		code int
		want []string
	}{
		{[]string{"push", "01k"}, exitOK, []string{
			"TASK", "01k", "h/1", "dead", "3 of 5", "12", "https://hooks.example", "the receiver responded with 500",
		}},
		{[]string{"push", "--state", "dead"}, exitOK, []string{"h/1", "more with --cursor 01k~h/1"}},
		{[]string{"push"}, exitOK, []string{"no push configurations"}},
		{[]string{"push", "01k", "--json"}, exitOK, []string{`"last_event":5`}},
		{[]string{"push", "01k", "--state", "dead"}, exitUsage, []string{"leave them or UID out"}},
		{[]string{"push-retry", "01k", "h/1"}, exitOK, []string{`push configuration "h/1" of task "01k" is active again; it continues after event 3`}},
		{[]string{"push-retry", "01k", "h/1", "--json"}, exitOK, []string{`"state":"active"`}},
	} {
		code, out := run(c.args...)
		if code != c.code {
			t.Errorf("%v: exit code %d: %s", c.args, code, out)
		}
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%v does not say %q:\n%s", c.args, want, out)
			}
		}
	}
}
