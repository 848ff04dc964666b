package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
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
	quiet = s.watch(t, siegeQuiet())
	honest := s.startHonest(t)
	restore := yieldProcessor(t)
	attack(t, s)
	restore()
	during = honest.stop(t)
	if during.Count > 0 || len(during.Took) == 0 {
		t.Errorf("honest callers: %d calls succeeded and %d failed beside the attack, such as %q", len(during.Took), during.Count, during.Failed)
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

// siegeQuiet is how long the quiet server is watched first. The soak compares times,
// so it watches long enough for a percentile.
func siegeQuiet() time.Duration {
	if soaking() {
		return 15 * time.Second
	}
	return 300 * time.Millisecond
}

// keepOn repeats an attack for as long as a percentile needs in the soak, and runs it
// once otherwise.
func keepOn(attack func()) {
	for start := time.Now(); ; {
		attack()
		if !soaking() || time.Since(start) > 10*time.Second {
			return
		}
	}
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

// mustBeWell checks that the process lives and never held too much.
func (s *siege) mustBeWell(t *testing.T) {
	t.Helper()
	select {
	case <-s.Done:
		t.Fatalf("the server has ended:\n%s", s.Said.Tail(4000))
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

// sendLarge makes a task of the attacker's that holds nearly as much as a task may.
func (s *siege) sendLarge(t *testing.T, id string) {
	t.Helper()
	for i := range 4 { // each message differs: an equal one would be taken for a retry
		must(s.attacker.send(t.Context(), s.prey.agent, id, largest+strconv.Itoa(i)))(t)
	}
}
