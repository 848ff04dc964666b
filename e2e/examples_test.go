package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/servertest"
)

// TestTheExampleWorkersExecuteEachTaskOnce sends tasks to the workers in Python, shell and Go,
// 1,000 to each in the soak. The first two open a connection for each request and close it at
// once.
func TestTheExampleWorkersExecuteEachTaskOnce(t *testing.T) {
	t.Parallel()
	goWorker := filepath.Join(t.TempDir(), "go-worker")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", goWorker,
		"../examples/go").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	eachEngine(t, func(t *testing.T, e engine) {
		s := serve(t, e, "--rate-limit", "0")
		const org = "examples"
		s.cli(t, "org", "create", org)
		s.cli(t, "service", "create", "partner", "--org", org)
		from := peer{base: s.base, key: s.newKey(t, org, "service:partner", "svc:a2a:write")}
		var wg sync.WaitGroup
		for _, w := range []struct {
			agent string
			line  []string
			many  int // processes, to save minutes
		}{
			{"py", []string{"python3", "../examples/python/worker.py", "py"}, 2},
			{"sh", []string{"sh", "../examples/shell/worker.sh", "sh"}, 4},
			{"scout", []string{goWorker}, 1},
		} {
			s.cli(t, "agent", "create", w.agent, "--org", org, "--name", "Bot")
			key := s.newKey(t, org, "agent:"+w.agent, "svc:a2a:serve")
			var said []*servertest.Output
			for range w.many {
				said = append(said, startExample(t, s, key, w.line))
			}
			wg.Go(func() { serveOnce(t, from, w.agent, said) })
		}
		wg.Wait()
	})
}

// startExample runs a worker until the test is over, and returns its error output.
func startExample(t *testing.T, s *server, key string, line []string) *servertest.Output {
	t.Helper()
	said := new(servertest.Output)
	cmd := exec.Command(line[0], line[1:]...) // ours
	cmd.Env = append(os.Environ(), "PARLEY_SERVER="+s.base, "PARLEY_KEY="+key)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	return said
}

// staleLease matches the error of a worker whose lease was taken away; a port may begin with 409.
var staleLease = regexp.MustCompile(`\b409\b|lease_stale`)

// serveOnce sends tasks and checks that each ran once, under a lease that was live to its end.
func serveOnce(t *testing.T, from peer, agent string, said []*servertest.Output) {
	tasks := siegeSize(120, 1000)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	id := func(i int) string { return fmt.Sprintf("%s-%d", agent, i) }
	for i := range tasks {
		if _, err := from.send(ctx, agent, id(i), fmt.Sprint("number ", i)); err != nil {
			t.Error(err)
			return
		}
	}
	for i := range tasks {
		events, err := from.whole(ctx, agent, id(i)) // ends with the task
		if err != nil {
			t.Errorf("%s: %v", id(i), err)
			return
		}
		given, answered := 0, false
		for _, e := range events {
			if e.state == "working" {
				given++
			}
			answered = answered || strings.Contains(e.data, fmt.Sprintf(`You said: number %d"`, i)) &&
				strings.Contains(e.data, `"lastChunk":true`)
		}
		if given != 1 || !answered || events[len(events)-1].state != "completed" {
			t.Errorf("%s ran %d times and ended as %s, want 1 and completed", id(i), given, events[len(events)-1].data)
		}
	}
	for _, o := range said {
		if got := o.String(); staleLease.MatchString(got) {
			t.Errorf("worker of %s printed %s, want no stale lease", agent, got)
		}
	}
}
