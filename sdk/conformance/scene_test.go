package conformance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/sdk/client"
)

// scene is what one scenario works with: an agent, its drivers and a proxy between them and the
// server.
type scene struct {
	*site
	*proxy
	program program
	agent   string
	key     string // of the workers
	drivers []*driver
	sent    []string // ids of tasks
}

var scenes atomic.Int64

func newScene(t *testing.T, s *site, p program, name string) *scene {
	t.Helper()
	agent := fmt.Sprintf("%s-%d", strings.ReplaceAll(name, " ", "-"), scenes.Add(1))
	if _, err := s.admin.Agents.Create(t.Context(), client.AgentCreation{ID: agent, Name: agent}); err != nil {
		t.Fatal(err)
	}
	key, err := s.admin.Keys.Create(t.Context(), client.KeyCreation{
		Principal: "agent:" + agent, Scopes: []string{"svc:a2a:serve", "svc:tasks:write"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &scene{site: s, proxy: newProxy(t, s.url), program: p, agent: agent, key: key.Secret}
}

// terms are the settings of a driver. Zero fields are the defaults of the suite.
type terms struct {
	concurrency int           // 1
	lease       time.Duration // 20 s
	grace       time.Duration // none
	key         string        // that of the scene
	direct      bool          // without the proxy
}

// hire starts a driver.
func (s *scene) hire(t *testing.T, w terms) *driver {
	t.Helper()
	server, key := s.proxy.URL, s.key
	if w.direct {
		server = s.site.url()
	}
	if w.key != "" {
		key = w.key
	}
	if w.lease == 0 {
		w.lease = 20 * time.Second
	}
	d := s.program.start(
		t,
		"PARLEY_SERVER="+server, "PARLEY_KEY="+key, "AGENT="+s.agent,
		"CONCURRENCY="+strconv.Itoa(max(1, w.concurrency)),
		fmt.Sprintf("WORKER=worker-%d", len(s.drivers)+1),
		"LEASE="+strconv.Itoa(int(w.lease/time.Second)), "GRACE="+strconv.Itoa(int(w.grace/time.Millisecond)),
	)
	s.drivers = append(s.drivers, d)
	return d
}

// send sends a task with a command and returns the sender's id of the task.
func (s *scene) send(t *testing.T, command string, files ...client.Part) string {
	t.Helper()
	id := fmt.Sprintf("task-%d", len(s.sent)+1)
	s.sent = append(s.sent, id)
	s.say(t, id, command, files...)
	return id
}

// say sends a message on a task.
func (s *scene) say(t *testing.T, id, text string, files ...client.Part) {
	t.Helper()
	m := client.NewMessage(append([]client.Part{client.Text(text)}, files...)...)
	if _, err := s.admin.Agent(s.agent).Send(t.Context(), client.SendParams{ID: id, Message: m}); err != nil {
		t.Fatal(err)
	}
}

// task returns a task as its sender sees it.
func (s *scene) task(t *testing.T, id string) *client.Task {
	t.Helper()
	got, err := s.admin.Agent(s.agent).Get(t.Context(), id, client.GetParams{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// rests waits until a task is over or waits for its sender, and checks the state.
func (s *scene) rests(t *testing.T, id string, want client.TaskState) *client.Task {
	t.Helper()
	var got *client.Task
	await(t, fmt.Sprintf("%s is %s", id, want), s.alive, func() bool {
		got = s.task(t, id)
		return got.Status.State.Rests()
	})
	if got.Status.State != want {
		t.Errorf("%s is %s (%s), want %s", id, got.Status.State, got.Status.Message.Text(), want)
	}
	return got
}

// completes waits for the end of a task and checks the text of its artifacts.
func (s *scene) completes(t *testing.T, id, want string) {
	t.Helper()
	if got := s.rests(t, id, client.TaskCompleted); got.Text() != want {
		t.Errorf("the artifacts of %s are %q, want %q", id, got.Text(), want)
	}
}

// alive returns an error if all drivers have ended.
func (s *scene) alive() error {
	var last error
	for _, d := range s.drivers {
		if last = d.ended(); last == nil {
			return nil
		}
	}
	return last
}

// expires waits until the log says that the first lease of a task expired.
func (s *scene) expires(t *testing.T, id string) {
	t.Helper()
	await(t, "the first lease of "+id+" expires", s.alive, func() bool {
		ends := s.ends(t, id)
		return len(ends) > 0 && ends[0] == task.LeaseExpired
	})
}

// leases checks how the leases of a task that is over ended.
func (s *scene) leases(t *testing.T, id string, want ...task.LeaseEnd) {
	t.Helper()
	if got := s.ends(t, id); !slices.Equal(got, want) {
		t.Errorf("the leases of %s ended %v, want %v", id, got, want)
	}
}

// ends returns how the leases of a task ended; "" for a lease that has not.
func (s *scene) ends(t *testing.T, id string) (out []task.LeaseEnd) {
	t.Helper()
	for _, a := range s.records(t, s.agent)[id].attempts {
		out = append(out, a.Ended)
	}
	return out
}

// finish stops the drivers and checks what holds at the end of every scenario, by the log of the
// server and by what the drivers printed.
func (s *scene) finish(t *testing.T) {
	t.Helper()
	starts := map[string]int{}
	for i, d := range s.drivers {
		if d.ended() == nil {
			d.stop(t)
		}
		open := map[string]int{}
		for _, e := range d.events(t) {
			run := fmt.Sprintf("%s, attempt %d", e.Task, e.Attempt)
			switch e.Event {
			case "start":
				starts[e.Task]++
				open[run]++
			case "end", "interrupted":
				open[run]--
			}
		}
		for run, n := range open {
			if n != 0 && !d.killed {
				t.Errorf("driver %d: %d handlers of %s started and did not end", i+1, n, run)
			}
		}
	}
	records := s.records(t, s.agent)
	if len(records) != len(s.sent) {
		t.Errorf("the log has %d tasks, want %d", len(records), len(s.sent))
	}
	for id, r := range records {
		if err := r.check(); err != nil {
			t.Errorf("the log of %s: %v", id, err)
		}
		if starts[r.UID] == 0 {
			t.Errorf("no driver has executed %s, and it is %s", id, r.State)
		}
	}
}

// check returns what is wrong with the log of a task that should be over: it ends exactly once, and
// no lease starts while another is live.
func (r *record) check() error {
	ends, live := 0, ""
	for i := range r.log {
		e := &r.log[i]
		if e.Kind == task.StatusEvent && e.State.Terminal() {
			ends++
		}
		switch {
		case e.Lease == "":
		case e.Ended != "" && e.Lease == live:
			live = ""
		case e.Ended == "" && live == "":
			live = e.Lease
		default:
			return fmt.Errorf("event %d is about the lease %s while %q is live", e.Seq, e.Lease, live)
		}
	}
	switch {
	case !r.State.Terminal() || live != "":
		return fmt.Errorf("the task is %s, and the live lease is %q; want an end", r.State, live)
	case ends != 1 || !r.log[len(r.log)-1].State.Terminal():
		return fmt.Errorf("the task ends %d times, want once, with the last event", ends)
	}
	return nil
}
