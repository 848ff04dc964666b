package e2e

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestTaskKeyRevoked: a stream ends soon after its key is revoked, and ends properly.
func TestTaskKeyRevoked(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e engine) {
		t.Parallel()
		s := serve(t, e, calm...)
		o := newTaskOrg(t, s, "revoked")
		gone := peer{s.base, s.newKey(t, o.org, "service:partner", "svc:a2a:write")}
		must(gone.send(t.Context(), o.agent, "x", "go"))(t)
		ends := func(p peer) <-chan error {
			f := must(p.resubscribe(t.Context(), o.agent, "x", 0))(t)
			if first, err := f.next(); err != nil || first.state != "submitted" {
				t.Fatalf("first event = %+v, %v; want submitted", first, err)
			}
			end := make(chan error, 1)
			go func() {
				_, err := f.next()
				end <- err
			}()
			return end
		}
		lost, kept := ends(gone), ends(o.peer()) // another key of the same principal
		s.revoke(t, o.org, gone.key)
		select {
		case err := <-lost:
			if err != io.EOF {
				t.Errorf("end of the stream = %v, want EOF", err)
			}
		case <-time.After(soon):
			t.Errorf("the stream of a revoked key still runs after %v, want it ended", soon)
		}
		select {
		case err := <-kept:
			t.Errorf("the stream of a valid key ended too (%v), want it open", err)
		default:
		}
		if a, err := gone.call(t.Context(), o.agent, "tasks/get", object{"id": "x"}); err != nil || a.status != 401 {
			t.Errorf("call with a revoked key: got %d, %v; want 401", a.status, err)
		}
	})
}

// TestTaskOffline: a task for an agent without workers waits, also through a crash, and runs when
// a worker arrives. With a worker present the response to the send is already working, or
// completed if the caller waits.
func TestTaskOffline(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e engine) {
		t.Parallel()
		s := serve(t, e, calm...)
		o := newTaskOrg(t, s, "offline")
		state := func(want string, v taskView, err error) {
			t.Helper()
			if err != nil || v.Status.State != want {
				t.Fatalf("the task is %q (%v), want %q", v.Status.State, err, want)
			}
		}
		v, err := o.peer().send(t.Context(), o.agent, "early", "go")
		state("submitted", v, err)
		s.Kill()
		e.settle(t)
		o.server = serve(t, e, calm...)
		v, err = o.peer().get(t.Context(), o.agent, "early")
		state("submitted", v, err)
		w := o.hand().take(t, 60)
		if w.text() != "go" || w.Attempt != 1 {
			t.Errorf("worker claimed %+v, want text go at attempt 1", w)
		}
		v, err = o.peer().get(t.Context(), o.agent, "early")
		state("working", v, err)
		o.tell(t, w.Lease, object{"status": "completed", "artifacts": []object{artifact("result", "done")}})
		v, err = o.peer().get(t.Context(), o.agent, "early")
		state("completed", v, err)
		if len(v.Artifacts) != 1 || v.Artifacts[0].Name != "result" {
			t.Errorf("artifacts = %+v, want one named result", v.Artifacts)
		}

		// A waiting worker gets the task inside the send. Whether it waits is not visible from
		// outside, so a task may come too early and is then worked off.
		h := o.hand()
		eventually(t, time.Minute, "a send that a waiting worker takes", func() bool {
			claimed := make(chan error, 1)
			go func() {
				got, err := h.claim(t.Context(), 1, 30, 60)
				for _, w := range got {
					_, _, err = h.report(t.Context(), w.Lease, object{"status": "completed"})
				}
				claimed <- err
			}()
			v, err := o.peer().task(t.Context(), o.agent, "tasks/send", object{"message": text("go")})
			if err := errors.Join(err, <-claimed); err != nil {
				t.Fatal(err)
			}
			return v.Status.State == "working"
		})
		v, err = o.peer().send(t.Context(), "echo", "now", "hello")
		if err != nil || v.Status.State == "submitted" {
			t.Errorf("state of the echo agent's task = %q, %v; want it past submitted at once", v.Status.State, err)
		}
		v, err = o.peer().send(t.Context(), "echo", "wait", "hello", "Prefer: wait=30")
		state("completed", v, err)
	})
}

// TestTaskReach: which keys may call which agent, and who sees a task.
func TestTaskReach(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e engine) {
		t.Parallel()
		s := serve(t, e, calm...)
		home, away := newTaskOrg(t, s, "home"), newTaskOrg(t, s, "away")
		for _, id := range []string{"a", "b", "b.c"} {
			s.cli(t, "agent", "create", id, "--org", "home", "--name", id)
		}
		s.cli(t, "user", "create", "ann", "--org", "home")
		s.cli(t, "user", "create", "ann", "--org", "away")
		key := func(org, as string, scopes ...string) peer { return peer{s.base, s.newKey(t, org, as, scopes...)} }
		const write = "svc:a2a:write"
		t.Run("restriction", func(t *testing.T) {
			testRestriction(t, map[string]peer{
				"a":    key("home", "service:partner", write, "agent:a"),
				"all":  key("home", "service:partner", write, "agent:*"),
				"free": key("home", "service:partner", write),
				"away": key("away", "service:partner", write, "agent:*"),
				"none": key("home", "service:partner", "svc:tasks:read"),
			})
		})
		t.Run("paths", func(t *testing.T) {
			admin := peer{s.base, s.newKey(t, "home", "user:ann", "svc:admin:admin")}
			testPaths(t, key("home", "user:ann", write, "agent:a"), admin)
		})
		t.Run("owners", func(t *testing.T) {
			testOwners(t, home.agent, key("home", "user:ann", write), map[string]peer{
				"another principal": home.peer(),
			})
			testOwners(t, "echo", key("home", "user:ann", write), map[string]peer{
				"another principal":       home.peer(),
				"the same id, other org":  key("away", "user:ann", write),
				"a service, other org":    away.peer(),
				"the agent's own org":     {s.base, s.newKey(t, "main", "user:admin", write, "svc:admin:admin")},
				"an agent of the own org": key("home", "agent:a", write),
			})
		})
	})
}

// testRestriction calls each agent with each key.
func testRestriction(t *testing.T, keys map[string]peer) {
	for _, row := range []struct {
		key, agent string
		status     int
		code       string
	}{
		{"a", "a", 200, ""},
		{"a", "b", 403, "auth.agent_out_of_scope"},
		{"a", "b.c", 403, "auth.agent_out_of_scope"},
		{"a", "echo", 403, "auth.agent_out_of_scope"},
		{"a", "nobody", 403, "auth.agent_out_of_scope"}, // does not reveal whether it exists
		{"all", "a", 200, ""},
		{"all", "b", 200, ""},
		{"all", "echo", 200, ""}, // public, of another org
		{"all", "nobody", 404, "resource.not_found"},
		{"free", "b", 200, ""},
		{"free", "echo", 200, ""},
		{"away", "a", 404, "resource.not_found"}, // of another org, not public
		{"away", "echo", 200, ""},
		{"none", "a", 403, "auth.scope_missing"},
		{"none", "nobody", 403, "auth.scope_missing"},
	} {
		a, err := keys[row.key].call(t.Context(), row.agent, "tasks/send", object{"message": text("hello")})
		if err != nil {
			t.Error(err)
			continue
		}
		if a.status != row.status || (row.code == "") != (a.Error == nil) || row.code != "" &&
			!strings.Contains(string(a.Error.Data), row.code) {
			t.Errorf("key %q at agent %q: %d %+v; want %d %s", row.key, row.agent, a.status, a.Error, row.status, row.code)
		}
	}
	a, err := peer{base: keys["a"].base}.call(t.Context(), "a", "tasks/send", object{"message": text("hello")})
	if err != nil || a.status != 401 {
		t.Errorf("without a key: got %d, %v; want 401", a.status, err)
	}
}

// testOwners accesses a task with the keys of others: for them it does not exist, and its id is
// free.
func testOwners(t *testing.T, agent string, owner peer, others map[string]peer) {
	ctx := t.Context()
	id := "shared-" + agent
	must(owner.send(ctx, agent, id, "the owner's secret"))(t)
	if agent == "echo" { // the other agent has no worker, so its task waits
		eventually(t, soon, "the end of the owner's task",
			func() bool { return must(owner.get(ctx, agent, id))(t).Status.State == "completed" })
	}
	mine := must(owner.call(ctx, agent, "tasks/get", object{"id": id, "historyLength": 10}))(t)
	for name, p := range others {
		for _, method := range []string{"tasks/get", "tasks/cancel", "tasks/resubscribe"} {
			there := must(p.call(ctx, agent, method, object{"id": id}))(t)
			nowhere := must(p.call(ctx, agent, method, object{"id": "no-such-id"}))(t)
			if there.Error == nil || there.Error.Code != -32001 || there.status != 200 {
				t.Errorf("%s, %s: %d %s %+v; want -32001", name, method, there.status, there.Result, there.Error)
				continue
			}
			if there.Error.Message != nowhere.Error.Message || there.status != nowhere.status {
				t.Errorf("%s, %s: error for an id in use = %q, want that for an unused one, %q", name, method, there.Error.Message,
					nowhere.Error.Message)
			}
		}
		own := must(p.call(ctx, agent, "tasks/send", object{"id": id, "message": text("mine"), "historyLength": 10}))(t)
		if own.Error != nil || strings.Contains(string(own.Result), "secret") ||
			!strings.Contains(string(own.Result), "mine") {
			t.Errorf("%s sends with the same id: got %s %+v, want a task of its own", name, own.Result, own.Error)
		}
	}
	after := must(owner.call(ctx, agent, "tasks/get", object{"id": id, "historyLength": 10}))(t)
	if !slices.Equal(mine.Result, after.Result) {
		t.Errorf("task of the owner = %s\nwant %s", after.Result, mine.Result)
	}
}
