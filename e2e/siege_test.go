package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// maxResident is what the server's memory may come to under any attack, in MiB.
const maxResident = 512

// siege is a server with honest callers and an attacker. The attacker's key belongs
// to another org and may do nothing but send tasks to public agents.
type siege struct {
	*server
	prey     *taskOrg // the org whose public agent is attacked
	attacker peer     // service:attacker of the org mallory, svc:a2a:write
	honest   peer     // service:caller of the org honest, svc:a2a:write
	reader   string   // key of a user of the org honest, svc:tasks:read and svc:tasks:write
}

// eachSiege runs an attack on a fresh server of each engine. Afterwards the process
// must be alive, must never have held more than maxResident, and must not have
// failed an honest caller.
func eachSiege(t *testing.T, attack func(t *testing.T, s *siege), flags ...string) {
	eachEngine(t, func(t *testing.T, e engine) {
		if !soaking() {
			t.Parallel() // beside the other engine; the soak compares times, and runs alone
		}
		quiet, during := newSiege(t, serve(t, e, flags...)).beside(t, attack)
		during.mustBeUnharmed(t, quiet)
	})
}

// beside runs one attack beside honest callers, who must be served. It returns what they
// saw before and during the attack.
func (s *siege) beside(t *testing.T, attack func(t *testing.T, s *siege)) (quiet, during *sightings) {
	t.Helper()
	quiet = s.watch(t, siegeQuiet(t))
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { during = s.callHonestly(ctx, t) })
	attack(t, s)
	cancel()
	wg.Wait()
	if during.count > 0 || len(during.took) == 0 {
		t.Errorf("honest callers: %d calls succeeded and %d failed beside the attack, such as %q", len(during.took), during.count, during.failed)
	}
	s.mustBeWell(t)
	return quiet, during
}

// newSiege adds the cast to a server.
func newSiege(t *testing.T, s *server) *siege {
	t.Helper()
	out := &siege{server: s, prey: &taskOrg{server: s, org: "prey", agent: "bot-prey"}}
	s.cli(t, "org", "create", "prey")
	s.cli(t, "agent", "create", out.prey.agent, "--org", "prey", "--name", "Prey", "--public")
	out.prey.worker = s.newKey(t, "prey", "agent:"+out.prey.agent, "svc:a2a:serve")
	s.cli(t, "service", "create", "partner", "--org", "prey")
	out.prey.sender = s.newKey(t, "prey", "service:partner", "svc:a2a:write")
	s.cli(t, "org", "create", "mallory")
	s.cli(t, "service", "create", "attacker", "--org", "mallory")
	out.attacker = peer{s.base, s.newKey(t, "mallory", "service:attacker", "svc:a2a:write")}
	s.cli(t, "org", "create", "honest")
	s.cli(t, "service", "create", "caller", "--org", "honest")
	out.honest = peer{s.base, s.newKey(t, "honest", "service:caller", "svc:a2a:write")}
	s.cli(t, "user", "create", "ann", "--org", "honest")
	out.reader = s.newKey(t, "honest", "user:ann", "svc:tasks:read", "svc:tasks:write")
	return out
}

// sightings is what honest callers saw.
type sightings struct {
	took   []time.Duration
	failed []string // the first few
	count  int      // of failures
}

func (s *sightings) note(took time.Duration, err error) {
	if err != nil {
		if s.count++; len(s.failed) < 5 {
			s.failed = append(s.failed, err.Error())
		}
		return
	}
	s.took = append(s.took, took)
}

// percentile is the time that so many of a hundred calls did not exceed.
func (s *sightings) percentile(p int) time.Duration {
	if len(s.took) == 0 {
		return 0
	}
	slices.Sort(s.took)
	return s.took[min(len(s.took)-1, len(s.took)*p/100)]
}

// callHonestly sends a task, gets it and lists proposals, over and over, at a rate
// that leaves the server room. It runs until ctx ends.
func (s *siege) callHonestly(ctx context.Context, t *testing.T) *sightings {
	out := &sightings{}
	pace := time.NewTicker(15 * time.Millisecond)
	defer pace.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return out
		case <-pace.C:
		}
		start := time.Now()
		err := s.honestCall(t.Context(), i)
		out.note(time.Since(start), err)
	}
}

func (s *siege) honestCall(ctx context.Context, i int) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	id := fmt.Sprintf("honest-%d", i/3)
	switch i % 3 {
	case 0:
		_, err := s.honest.send(ctx, "echo", id, "hello")
		return err
	case 1:
		_, err := s.honest.get(ctx, "echo", id)
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/api/v1/orgs/honest/proposals", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+s.reader)
	res, err := taskClient.Do(req)
	if err != nil {
		return err
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("list: %s", res.Status)
	}
	return nil
}

// watch calls honestly for a while.
func (s *siege) watch(t *testing.T, d time.Duration) *sightings {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	return s.callHonestly(ctx, t)
}

// siegeQuiet is how long the quiet server is watched first. The soak compares times,
// so it watches long enough for a percentile.
func siegeQuiet(t *testing.T) time.Duration {
	if soaking() {
		return 15 * time.Second
	}
	return 300 * time.Millisecond
}

// siegeSize is how large an attack is: as it was first seen in the soak, smaller
// otherwise.
func siegeSize(short, soak int) int {
	if soaking() {
		return soak
	}
	return short
}

// soaking reports whether this is the long run, in which times are compared.
func soaking() bool { return os.Getenv("PARLEY_SIEGE") == "soak" }

// mustBeUnharmed compares how long honest calls took.
func (s *sightings) mustBeUnharmed(t *testing.T, quiet *sightings) {
	t.Helper()
	before, during := quiet.percentile(99), s.percentile(99)
	t.Logf("honest callers: %d calls, p50 %v, p99 %v (quiet: %v, %v)", len(s.took), s.percentile(50), during, quiet.percentile(50), before)
	if limit := max(3*before, 25*time.Millisecond); soaking() && during > limit {
		t.Errorf("honest callers: p99 is %v beside the attack; want at most %v", during, limit)
	}
}

// mustBeWell checks that the process lives and never held too much.
func (s *siege) mustBeWell(t *testing.T) {
	t.Helper()
	select {
	case <-s.done:
		t.Fatalf("the server has ended:\n%s", s.out.tail(4000))
	default:
	}
	peak := s.peak(t)
	t.Logf("peak resident memory: %d MiB", peak)
	if peak > maxResident {
		t.Errorf("peak resident memory: %d MiB; want at most %d", peak, maxResident)
	}
}

// peak is the most memory that the server's process ever held, in MiB.
func (s *server) peak(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		t.Skipf("memory is read from /proc, which is not here: %v", err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib / 1024
}

// largest is a text of which four fill a task.
var largest = strings.Repeat("x", 3900<<10)

// sendLarge makes a task of the attacker's that holds nearly as much as a task may.
func (s *siege) sendLarge(t *testing.T, id string) {
	t.Helper()
	for i := range 4 { // each message differs: an equal one would be taken for a retry
		must(s.attacker.send(t.Context(), s.prey.agent, id, largest+strconv.Itoa(i)))(t)
	}
}
