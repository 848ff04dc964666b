package web

import (
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/text"
	"github.com/parley-dev/parley/internal/wire"
)

// sendAgain sends the first message of a task as a new task.
func (v *visit) sendAgain() error {
	ctx, id := v.r.Context(), v.agentID()
	call, err := v.Tasks.Reach(ctx, v.caller, id)
	if err != nil {
		return err
	}
	old, err := v.ownTask(call)
	if err != nil {
		return err
	}
	m := old.History[0]
	m.ID = "" // the message is a new one
	t, err := v.sendNew(call, m)
	if err != nil {
		return v.showTask("", err)
	}
	return v.done(v.taskPath(id, t.ID), "The same message was sent as a new task.")
}

var errTaskTooLarge = errs.New(errs.TooLarge, "task.too_large",
	"the task is too large for a page; read it over A2A with tasks/get")

// ownTask returns the whole task in the URL, if it is not too large.
func (v *visit) ownTask(call dispatch.Call) (task.Task, error) {
	ctx := v.r.Context()
	t, err := v.Tasks.Get(ctx, call, v.r.PathValue("task"), task.Content{})
	if err != nil {
		return t, err
	}
	if t.Size > maxTaskSize {
		return t, errTaskTooLarge
	}
	t, err = v.Tasks.Get(ctx, call, t.ID, task.All)
	if err == nil && len(t.History) == 0 {
		err = errs.ErrNotFound
	}
	return t, err
}

// taskJSON shows a task of the member as JSON.
func (v *visit) taskJSON() error {
	call, err := v.Tasks.Reach(v.r.Context(), v.caller, v.agentID())
	if err != nil {
		return err
	}
	t, err := v.ownTask(call)
	if err != nil {
		return err
	}
	return v.sendJSON(&t)
}

// sendJSON sends a task in the form of A2A 1.0. A browser shows it as text: it runs nothing.
func (v *visit) sendJSON(t *task.Task) error {
	body := wire.AppendV1Task(nil, t, len(t.History))
	h := v.w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Content-Disposition", mime.FormatMediaType("inline", map[string]string{"filename": "task.json"}))
	h.Set("Content-Length", strconv.Itoa(len(body)))
	contentHeaders(h)
	v.w.WriteHeader(http.StatusOK)
	_, _ = v.w.Write(body) // an error means that the browser is gone
	return nil
}

// contentHeaders keeps content of agents and senders from running as a page of this site.
func contentHeaders(h http.Header) {
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "private, no-store")
}

// maxCurl limits the size of a command that a page shows, in bytes.
const maxCurl = 16 << 10

// curl returns the command that sends a message to an agent. The key is a variable. It returns ""
// if the command is too large.
func (p *Pages) curl(id string, m *task.Message) string {
	if m.Size() > maxCurl {
		return ""
	}
	again := *m
	again.ID = ""
	body := `{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{"message":` +
		string(wire.AppendMessage(nil, &again)) + `}}`
	body, cut := text.Escape(body, maxCurl, text.InJSON) // so that the command shows what it sends
	out := "curl -sS " + shellQuote(p.PublicURL+"/a2a/"+id) + ` -H "Authorization: Bearer $PARLEY_KEY"` +
		" -H 'Content-Type: application/json' \\\n  --data-raw " + shellQuote(body)
	if cut || len(out) > maxCurl {
		return ""
	}
	return out
}

// shellQuote quotes a text for a POSIX shell.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
