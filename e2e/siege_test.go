package e2e

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// maxResident is the limit of the server's memory under any attack, in MiB.
const maxResident = 512

// siege is a server with honest callers and an attacker. The attacker's key belongs to another org
// and may only send tasks to public agents.
type siege struct {
	*server
	prey     *taskOrg // the org whose public agent is attacked
	attacker peer     // service:attacker of the org mallory, svc:a2a:write
	honest   peer     // service:caller of the org honest, svc:a2a:write
	reader   string   // key of a user of the org honest, svc:tasks:read and svc:tasks:write
}

// eachSiege runs an attack on a fresh server of each engine. Afterwards the process must be alive,
// must never have held more than maxResident, and must not have failed an honest caller.
func eachSiege(t *testing.T, attack func(t *testing.T, s *siege), flags ...string) {
	eachEngine(t, func(t *testing.T, e engine) {
		if !soaking() {
			t.Parallel() // beside the other engine; the soak compares times and runs alone
		}
		e.besiege(t, attack, flags...)
	})
}

// frontSiege is eachSiege for an attack on what is in front of the store: connections, memory and
// hashing. Its short form runs on SQLite only.
func frontSiege(t *testing.T, attack func(t *testing.T, s *siege), flags ...string) {
	if soaking() {
		eachSiege(t, attack, flags...)
		return
	}
	engine{name: "sqlite"}.fresh(t).besiege(t, attack, flags...)
}

func (e engine) besiege(t *testing.T, attack func(t *testing.T, s *siege), flags ...string) {
	var last *siege
	mustBeUnharmed(t, func() (quiet, during *sightings) {
		if last != nil {
			last.Kill() // a second measurement has a server and a store of its own
			e = e.fresh(t)
		}
		last = newSiege(t, serve(t, e, flags...))
		return last.beside(t, attack)
	})
}

// beside runs one attack beside honest callers, whose calls must succeed. It returns their
// sightings during the attack and, in the soak, which compares times, before it.
func (s *siege) beside(t *testing.T, attack func(t *testing.T, s *siege)) (quiet, during *sightings) {
	t.Helper()
	quiet = &sightings{}
	if soaking() {
		quiet = s.watch(t, 15*time.Second)
	}
	honest := s.startHonest(t)
	restore := yieldProcessor(t)
	attack(t, s)
	restore()
	during = honest.stop(t)
	if during.Count > 0 || len(during.Took) == 0 {
		t.Errorf("calls during the attack: %d succeeded, %d failed (such as %q); want at least 1 and 0",
			len(during.Took), during.Count, during.Failed)
	}
	s.mustBeWell(t)
	return quiet, during
}

// newSiege adds the cast to a server.
func newSiege(t *testing.T, s *server) *siege {
	t.Helper()
	out := &siege{server: s, prey: &taskOrg{server: s, org: "prey", agent: "bot-prey"}}
	var wg sync.WaitGroup // an org each, at the same time: commands mostly start and wait
	prey, mallory, honest := commands{server: s}, commands{server: s}, commands{server: s}
	wg.Go(func() {
		prey.run("org", "create", "prey")
		prey.run("agent", "create", out.prey.agent, "--org", "prey", "--name", "Prey", "--public")
		out.prey.worker = prey.newKey("prey", "agent:"+out.prey.agent, "svc:a2a:serve")
		prey.run("service", "create", "partner", "--org", "prey")
		out.prey.sender = prey.newKey("prey", "service:partner", "svc:a2a:write")
	})
	wg.Go(func() {
		mallory.run("org", "create", "mallory")
		mallory.run("service", "create", "attacker", "--org", "mallory")
		out.attacker = peer{s.base, mallory.newKey("mallory", "service:attacker", "svc:a2a:write")}
	})
	wg.Go(func() {
		honest.run("org", "create", "honest")
		honest.run("service", "create", "caller", "--org", "honest")
		out.honest = peer{s.base, honest.newKey("honest", "service:caller", "svc:a2a:write")}
		honest.run("user", "create", "ann", "--org", "honest")
		out.reader = honest.newKey("honest", "user:ann", "svc:tasks:read", "svc:tasks:write")
	})
	wg.Wait()
	if err := errors.Join(prey.err, mallory.err, honest.err); err != nil {
		t.Fatal(err)
	}
	return out
}

// keepOn repeats an attack long enough for a percentile in the soak, and runs it once otherwise.
func keepOn(attack func()) {
	for start := time.Now(); ; {
		attack()
		if !soaking() || time.Since(start) > 10*time.Second {
			return
		}
	}
}

// siegeSize returns the size of an attack: the original size in the soak, a smaller one otherwise.
func siegeSize(short, soak int) int {
	if soaking() {
		return soak
	}
	return short
}

// soaking reports whether this is the long run, in which times are compared.
func soaking() bool { return os.Getenv("PARLEY_SIEGE") == "soak" }

// mustBeWell checks that the process lives and never exceeded its memory limit.
func (s *siege) mustBeWell(t *testing.T) {
	t.Helper()
	select {
	case <-s.Done:
		t.Fatalf("the server has ended, want it to run:\n%s", s.Said.Tail(4000))
	default:
	}
	peak := s.peak(t)
	t.Logf("peak resident memory: %d MiB", peak)
	if peak > maxResident {
		t.Errorf("peak resident memory: %d MiB; want at most %d", peak, maxResident)
	}
}

// peak returns the peak memory of the server's process, in MiB.
func (s *server) peak(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Cmd.Process.Pid))
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

// sendLarge sends a task of nearly the largest size as the attacker.
func (s *siege) sendLarge(t *testing.T, id string) {
	t.Helper()
	for i := range 4 { // they differ: an equal message would be a retry
		must(s.attacker.send(t.Context(), s.prey.agent, id, largest+strconv.Itoa(i)))(t)
	}
}
