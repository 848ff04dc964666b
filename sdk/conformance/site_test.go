package conformance

import (
	"context"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/pgtest"
	"github.com/parley-dev/parley/internal/servertest"
	"github.com/parley-dev/parley/internal/store"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/sdk/client"
)

// org is the org that the server makes at its first start.
const org = "main"

// site is a server on its own store, which may be killed and started again.
type site struct {
	data  []string // the flags that select the store
	admin *client.Client
	log   *store.Store // to read the task log, leases included, which no API shows

	mu     sync.Mutex
	server *servertest.Process
}

// newSite starts a server on an empty store of an engine.
func newSite(t *testing.T, engine string) *site {
	t.Helper()
	s := &site{}
	var o store.Options
	if engine == "postgres" {
		o.URL = pgtest.Copy(t, func(url string) error {
			_, err := servertest.Run(exec.Command(filepath.Join(built, "parley"), "migrate", "--database", url))
			return err
		})
		s.data = []string{"--database", o.URL}
	} else {
		o.Dir = t.TempDir()
		s.data = []string{"--data", o.Dir}
	}
	s.start(t)
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("the server said:\n%s", s.server.Said.Tail(4000))
		}
	})
	key := s.server.Key
	var err error
	if s.log, err = store.Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.log.Close() })
	// The admin's requests go through a proxy without faults, whose URL survives a restart.
	s.admin, err = client.New(client.Config{URL: newProxy(t, s.url).URL, Key: key, Retry: client.Retry{Attempts: 20}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// start starts the server, on a new port.
func (s *site) start(t *testing.T) {
	t.Helper()
	args := []string{"serve", "--listen", "127.0.0.1:0", "--rate-limit", "0"}
	cmd := exec.Command(filepath.Join(built, "parley"), append(args, s.data...)...)
	cmd.Env = servertest.Environ()
	p, err := servertest.Start(cmd, "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server = p
}

// kill ends the server without any warning.
func (s *site) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server.Kill()
}

func (s *site) url() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.server.URL
}

// record is what the log says about one task.
type record struct {
	task.Task
	log      []task.Event
	attempts []task.Attempt
}

// records reads the log of all tasks to an agent, by the sender's id of the task.
func (s *site) records(t *testing.T, agent string) map[string]record {
	t.Helper()
	out := map[string]record{}
	for before := ""; ; {
		rows, err := s.log.Tasks().List(t.Context(), dispatch.Filter{Org: org, Agent: agent, Before: before, Limit: 500})
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) == 0 {
			return out
		}
		before = rows[len(rows)-1].UID
		for _, row := range rows {
			r := record{Task: row}
			for {
				events, err := s.log.Tasks().Events(t.Context(), org, row.UID, int64(len(r.log)), 500)
				if err != nil {
					t.Fatal(err)
				}
				if len(events) == 0 {
					break
				}
				r.log = append(r.log, events...)
			}
			r.attempts = task.Attempts(r.log)
			out[row.ID] = r
		}
	}
}

// patience bounds every wait; all of them end early when their condition holds.
const patience = 3 * time.Minute

// await waits until the condition holds. stop, if it returns an error, ends the wait.
func await(t *testing.T, what string, stop func() error, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for !ok() {
		if err := stop(); err != nil {
			t.Fatalf("waited for: %s; %v", what, err)
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waited %v for: %s", patience, what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
