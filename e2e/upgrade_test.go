package e2e

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

//go:embed upgrade/*.sql
var laterMigrations embed.FS

// release is a build that stands for a newer version: 9.1.0 has one more migration, which is
// compatible, and 9.2.0 another, which is not. The linker adds them, so that nothing is compiled
// again.
type release struct {
	version    string
	migrations []string
	path       string
}

// releases builds both once, for all tests.
var releases = sync.OnceValues(func() ([2]release, error) {
	both := [2]release{
		{version: "9.1.0", migrations: []string{"compatible.sql"}},
		{version: "9.2.0", migrations: []string{"compatible.sql", "incompatible.sql"}},
	}
	for i := range both {
		r := &both[i]
		r.path = filepath.Join(filepath.Dir(program), "parley-"+r.version) // TestMain removes it
		const parley = "github.com/parley-dev/parley/internal/"
		flags := "-s -w -X " + parley + "app.version=" + r.version + ` -X "` + parley + "store.moreSchema="
		for _, name := range r.migrations {
			text, err := laterMigrations.ReadFile("upgrade/" + name)
			if err != nil {
				return both, err
			}
			flags += "\f" + name + "\n" + string(text)
		}
		out, err := exec.Command("go", "build", "-buildvcs=false", "-ldflags", flags+`"`, "-o", r.path,
			"../cmd/parley").CombinedOutput()
		if err != nil {
			return both, fmt.Errorf("build %s: %w\n%s", r.version, err, out)
		}
	}
	return both, nil
})

func buildReleases(t *testing.T) (compatible, incompatible release) {
	t.Helper()
	both := must(releases())(t)
	return both[0], both[1]
}

func (r release) serve(t *testing.T, e engine) *server {
	t.Helper()
	return launch(t, e, slices.Concat([]string{r.path}, e.serveArgs(), []string{"--rate-limit", "0"}), nil)
}

// run runs a command that ends by itself.
func (r release) run(t *testing.T, e engine, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errOut bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.path, append(args, e.data...)...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	return out.String(), errOut.String(), err
}

func (r release) must(t *testing.T, e engine, args ...string) string {
	t.Helper()
	stdout, stderr, err := r.run(t, e, args...)
	if err != nil {
		t.Fatalf("parley %s %q: %v\n%s", r.version, args, err, stderr)
	}
	return stdout
}

// refuses expects a command to fail with all the words in its error.
func (r release) refuses(t *testing.T, e engine, args []string, words ...string) {
	t.Helper()
	_, stderr, err := r.run(t, e, args...)
	if err == nil {
		t.Fatalf("parley %s %q succeeded; want a refusal with %q", r.version, args, words)
	}
	for _, w := range words {
		if !strings.Contains(stderr, w) {
			t.Errorf("parley %s %q: %s; want %q in it", r.version, args, stderr, w)
		}
	}
}

// upgradeClient is the load on one node: proposals of a fleet, and tasks.
type upgradeClient struct {
	*fleet
	node   *server
	sender peer
	sent   []string // ids of the tasks that were acknowledged
	ended  error    // why the load ended; nil: it was stopped
}

func (f *fleet) at(node *server, senderKey string) *upgradeClient {
	one := &fleet{org: f.org, admin: f.admin, voters: f.voters, keys: f.keys, http: f.http, base: node.base}
	return &upgradeClient{fleet: one, node: node, sender: peer{node.base, senderKey}}
}

func (c *upgradeClient) run(ctx context.Context, name string) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	end := func(err error) {
		if err != nil && ctx.Err() == nil {
			mu.Lock()
			defer mu.Unlock()
			if c.ended == nil {
				c.ended = err
			}
			cancel()
		}
	}
	for i := range 3 {
		wg.Go(func() { end(c.work(ctx, i, rand.New(rand.NewPCG(uint64(i), uint64(len(name)))))) })
	}
	wg.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			id := fmt.Sprintf("%s-%d", name, i)
			// Not ctx: an interrupted send may have created the task.
			if _, err := c.sender.send(context.WithoutCancel(ctx), "echo", id, "hello"); err != nil {
				end(err)
				return
			}
			c.sent = append(c.sent, id)
			time.Sleep(20 * time.Millisecond) // each of them is read again at the end
		}
	})
	wg.Wait()
}

// during runs the load on all nodes while do runs, and for the given number of further responses
// of each.
func during(t *testing.T, phase string, clients []*upgradeClient, answers int64, do func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for i, c := range clients {
		c.ended = nil
		wg.Go(func() { c.run(ctx, fmt.Sprintf("%s-%d", phase, i)) })
	}
	await := func() {
		for _, c := range clients {
			goal := c.acks.Load() + answers
			for deadline := time.Now().Add(soon); c.acks.Load() < goal &&
				time.Now().Before(deadline); time.Sleep(time.Millisecond) {
				if c.node.gone(t) {
					break
				}
			}
		}
	}
	await()
	do()
	await()
	cancel()
	wg.Wait()
}

// gone reports whether a node is not ready because of a migration.
func (s *server) gone(t *testing.T) bool {
	t.Helper()
	res, err := http.Get(s.base + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var problem struct{ Code, Detail string }
	if res.StatusCode == http.StatusOK {
		return false
	}
	if err := json.NewDecoder(res.Body).Decode(&problem); err != nil || problem.Code != "store.migrated" ||
		!strings.Contains(problem.Detail, "restart this node with that version") {
		t.Errorf("/readyz: got %s %+v %v, want store.migrated", res.Status, problem, err)
	}
	return true
}

func (s *server) stop(t *testing.T) {
	t.Helper()
	if err := s.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Done:
	case <-time.After(soon):
		t.Fatal("the server still runs, want it stopped")
	}
}

// TestRollingUpgrade runs nodes of three versions on one store under load: a compatible migration
// changes nothing for the older ones; an incompatible one is refused while they are alive, or
// takes them out of service when forced. In the end everything acknowledged is there, and the
// counters equal the rows.
func TestRollingUpgrade(t *testing.T) {
	next, last := buildReleases(t)
	eachEngine(t, func(t *testing.T, e engine) {
		first := serve(t, e, "--rate-limit", "0")
		base := newFleet(t, first, 3)
		first.cli(t, "service", "create", "caller", "--org", base.org)
		sender := first.newKey(t, base.org, "service:caller", "svc:a2a:write")
		clients := []*upgradeClient{base.at(first, sender)}
		if e.name == "postgres" {
			clients = append(clients, base.at(serve(t, e, "--rate-limit", "0"), sender))
		}
		whole := t // a node that joins in one part serves in the next
		t.Run("compatible", func(t *testing.T) {
			next.refuses(t, e, []string{"org", "list"}, "an older server uses the store", "upgrade the server first")
			during(t, "compatible", clients, 50, func() {
				if e.name == "postgres" {
					clients = append(clients, base.at(next.serve(whole, e), sender)) // it migrates at its start
				} else if said := next.must(t, e, "migrate"); !strings.Contains(said,
					"applied compatible.sql (compatible)") {
					t.Errorf("migrate printed %q, want compatible.sql applied", said)
				}
			})
			during(t, "together", clients, 100, func() {})
			for _, c := range clients {
				if c.ended != nil || c.node.gone(t) {
					t.Errorf("node of a compatible version: load ended with %v, want it to run", c.ended)
				}
				c.verify(t, false)
			}
			first.saysSoon(t, "this version can keep running")
			next.must(t, e, "org", "list")
			first.cli(t, "org", "list") // the older program may still work on the store
		})
		t.Run("refused", func(t *testing.T) {
			last.refuses(t, e, []string{"migrate"}, "incompatible.sql", "stop them", "parley migrate --force")
			last.refuses(t, e, []string{"org", "list"}, "an older server uses the store")
			if e.name == "postgres" {
				last.refuses(t, e, []string{"serve", "--listen", "127.0.0.1:0"}, "these still use the store",
					"parley "+next.version, "seen")
			}
			var plan struct {
				Status  string
				Pending []struct {
					Name       string
					Compatible bool
				}
				Nodes []struct{ Host string }
			}
			if err := json.Unmarshal([]byte(last.must(t, e, "migrate", "--dry-run", "--json")), &plan); err != nil {
				t.Fatal(err)
			}
			if plan.Status != "pending" || len(plan.Pending) != 1 || plan.Pending[0].Compatible ||
				len(plan.Nodes) != len(clients) {
				t.Errorf("plan = %+v, want 1 pending migration, incompatible, and %d nodes", plan, len(clients))
			}
			for _, c := range clients {
				if c.node.gone(t) {
					t.Error("a refused migration took a node out of service, want it ready")
				}
			}
		})
		t.Run("forced", func(t *testing.T) { forceUpgrade(t, e, last, clients) })
		// Going back is refused, also to the version in between.
		next.refuses(t, e, []string{"serve", "--listen", "127.0.0.1:0"}, "newer parley (9.2.0)", "run that version")
	})
}

func forceUpgrade(t *testing.T, e engine, last release, clients []*upgradeClient) {
	during(t, "forced", clients, 50, func() {
		last.must(t, e, "migrate", "--force")
		// No node may commit anything from now on, whether or not it has noticed.
		for _, c := range clients {
			_, err := c.call(c.keys[0], "POST", "/proposals", map[string]string{
				"title": "Too late", "category": "process", "problem": "It fails.", "suggested_fix": "Repair it.",
			}, 201)
			if err == nil || !strings.Contains(err.Error(), "503") || !strings.Contains(err.Error(), "store.migrated") {
				t.Errorf("a write to a node of an older version: %v; want 503 store.migrated", err)
			}
		}
	})
	for _, c := range clients {
		for deadline := time.Now().Add(5 * time.Second); !c.node.gone(t); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("a node of an older version is still ready after 5 s, want it out of service")
			}
		}
		c.node.saysSoon(t, "this node is out of service")
		if n := strings.Count(c.node.Said.String(), "this node is out of service"); n != 1 {
			t.Errorf("the node says %d times why it is out of service; want once", n)
		}
		c.node.stop(t)
	}
	newest := last.serve(t, e)
	for _, c := range clients {
		c.base, c.sender.base = newest.base, newest.base
		c.verify(t, false)
		for _, id := range c.sent {
			if _, err := c.sender.get(t.Context(), "echo", id); err != nil {
				t.Errorf("acknowledged task %s: got %v, want it there", id, err)
			}
		}
		if len(c.sent) == 0 || len(c.ledger.all()) == 0 {
			t.Error("nothing was sent, want some load: nothing was tested")
		}
		if c.ended == nil {
			t.Error("the load on a node of an older version went on, want it refused")
		}
	}
	newest.stop(t)
}

// saysSoon waits for words in the log.
func (s *server) saysSoon(t *testing.T, words string) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !strings.Contains(s.Said.String(), words) {
		if time.Now().After(deadline) {
			t.Fatalf("the server did not log %q within 10 s:\n%s", words, s.Said.Tail(4000))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestUpgradeWithAStop stops all nodes first: then force is not needed.
func TestUpgradeWithAStop(t *testing.T) {
	t.Parallel()
	_, last := buildReleases(t)
	eachEngine(t, func(t *testing.T, e engine) {
		old := serve(t, e, "--rate-limit", "0")
		f := newFleet(t, old, 1)
		if _, err := f.call(f.keys[0], "POST", "/proposals", map[string]string{
			"title": "Before", "category": "process", "problem": "It fails.", "suggested_fix": "Repair it.",
		}, 201); err != nil {
			t.Fatal(err)
		}
		old.stop(t)
		last.refuses(t, e, []string{"org", "list"}, `run "parley migrate" first`)
		s := last.serve(t, e)
		f.base = s.base
		if rows := f.walk(t); len(rows) != 1 {
			t.Errorf("%d rows; want the one from before", len(rows))
		}
		last.must(t, e, "org", "list")
	})
}
