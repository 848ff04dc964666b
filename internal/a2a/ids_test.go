package a2a

import (
	"bufio"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/agent"
)

// named returns the name of the agent of a card.
func (a *answer) named() string {
	a.tb.Helper()
	var card struct{ Name string }
	if err := json.Unmarshal([]byte(a.Body), &card); err != nil || a.Status != 200 {
		a.tb.Fatalf("got %d %s, want 200 with a card", a.Status, a.Body)
	}
	return card.Name
}

// names lists the agents of the platform's card as "id name".
func (w *world) names(secret string) (out []string) {
	w.tb.Helper()
	var card struct {
		Agents []struct{ ID, Name, Status string }
	}
	if err := json.Unmarshal([]byte(w.do(secret, "GET", "/.well-known/agent.json", "").Body), &card); err != nil {
		w.tb.Fatal(err)
	}
	for _, a := range card.Agents {
		out = append(out, a.ID+" "+a.Name+" "+a.Status)
	}
	return out
}

// A card is that of the agent that the caller would call.
func TestACardIsThatOfTheAgentReached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.orgs.Agent(agent.Agent{ID: "echo", Org: "globex", Name: "Globex's echo"})
	w.orgs.Agent(agent.Agent{ID: "bot", Org: "globex", Name: "Globex's bot", Public: true})
	everybody := []string{"bot Globex's bot offline", "echo Echo available"}
	for name, c := range map[string]struct {
		secret    string
		echo, bot string
		card      []string
	}{
		"nobody in particular": {"", "Echo", "Globex's bot", everybody},
		"acme": {
			w.caller("user:ada"), "Echo", "Bot",
			[]string{"bot Bot offline", "echo Echo available", "other Other offline"},
		},
		"globex": {
			w.key("globex", "user:eve", "svc:a2a:write"), "Globex's echo", "Globex's bot",
			[]string{"bot Globex's bot offline", "echo Globex's echo offline"},
		},
		// A caller that may not call its own org's agent learns nothing of it.
		"restricted":     {w.key("globex", "user:bea", "svc:a2a:write", "agent:bot"), "Echo", "Globex's bot", everybody},
		"without rights": {w.key("globex", "user:joe", "svc:tasks:read"), "Echo", "Globex's bot", everybody},
	} {
		w.until("echo is available", func() bool {
			return strings.Contains(strings.Join(w.names(c.secret), "\n"), c.card[0])
		})
		if got := w.do(c.secret, "GET", "/a2a/echo", "").named(); got != c.echo {
			t.Errorf("%s: card of echo = %q, want %q", name, got, c.echo)
		}
		if got := w.do(c.secret, "GET", "/a2a/bot/.well-known/agent-card.json", "").named(); got != c.bot {
			t.Errorf("%s: card of bot = %q, want %q", name, got, c.bot)
		}
		w.until("presence is known", func() bool { return cmp.Equal(c.card, w.names(c.secret)) })
	}
	eve := w.key("globex", "user:eve", "svc:a2a:write")
	if got := w.rpc(eve, "echo", "GetExtendedAgentCard", `{}`).Body; !strings.Contains(got, "Globex's echo") {
		t.Errorf("extended card = %s, want Globex's echo", got)
	}
	// A disabled agent also hides the public one of the same id: it cannot be called.
	off := true
	w.orgs.EditAgent("globex", "echo", agent.Edit{Disabled: &off})
	if a := w.do(eve, "GET", "/a2a/echo", ""); a.Status != 404 {
		t.Errorf("status = %d, want 404: %s", a.Status, a.Body)
	}
	if diff := cmp.Diff([]string{"bot Globex's bot offline"}, w.names(eve)); diff != "" {
		t.Error(diff)
	}
}

// A stream on a task of a public agent, which an agent of the caller's org hides by now, ends when
// the public agent is no longer public; a stream on a task of the own agent continues.
func TestAStreamEndsWithTheAgentItIsOf(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fast)
	public, private := true, false
	publish := func(to *bool) {
		t.Helper()
		w.orgs.EditAgent("acme", "bot", agent.Edit{Public: to})
	}
	publish(&public)
	eve, base := w.key("globex", "user:eve", "svc:a2a:write"), w.serve()
	w.rpc(eve, "bot", "tasks/send", hello("there")).state("submitted")
	w.orgs.Agent(agent.Agent{ID: "bot", Org: "globex", Name: "Bot"})
	w.rpc(eve, "bot", "tasks/send", hello("here")).state("submitted")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	there := open(t, ctx, base+"/a2a/bot", eve, resubscribe("there"), "")
	here := bufio.NewReader(open(t, ctx, base+"/a2a/bot", eve, resubscribe("here"), "").Body)
	rest := endOf(t, there, func() { publish(&private) })
	if !strings.Contains(rest, "retry:") {
		t.Errorf("the stream ended with %q, want a retry hint", rest)
	}
	for comments := 0; comments < 20; {
		line, err := here.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, ":") {
			comments++
		}
	}
}
