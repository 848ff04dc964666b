package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// honestEnv holds the JSON of a caller. With it, TestMain runs this program as honest callers
// instead of tests. They have their own process, because the attacker in the tests' process would
// take their CPU time and distort the measurement.
const honestEnv = "PARLEY_HONEST_CALLER"

// caller holds the keys of an honest caller.
type caller struct {
	Base   string
	Sender string // key of a service, svc:a2a:write
	Reader string // key of a user of the org honest
}

// sightings is what the honest callers measured.
type sightings struct {
	Took   []time.Duration
	ByKind [3][]time.Duration // of sends, gets and lists
	Failed []string           // the first few
	Count  int                // of failures
}

func (s *sightings) note(i int, took time.Duration, err error) {
	if err != nil {
		if s.Count++; len(s.Failed) < 5 {
			s.Failed = append(s.Failed, err.Error())
		}
		return
	}
	s.Took = append(s.Took, took)
	s.ByKind[i%3] = append(s.ByKind[i%3], took)
}

// percentile returns the p-th percentile of the durations.
func (s *sightings) percentile(p int) time.Duration { return percentile(s.Took, p) }

func percentile(took []time.Duration, p int) time.Duration {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[min(len(took)-1, len(took)*p/100)]
}

// runHonest calls until stdin ends and then writes the sightings to stdout.
func runHonest(config string) error {
	var c caller
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	fmt.Println("calling")
	return json.NewEncoder(os.Stdout).Encode(c.callHonestly(ctx))
}

// callHonestly sends a task, gets it and lists proposals, over and over, at a rate that leaves the
// server idle time. It runs until ctx ends.
func (c caller) callHonestly(ctx context.Context) *sightings {
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
		err := c.call(i)
		out.note(i, time.Since(start), err)
	}
}

func (c caller) call(i int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	sender := peer{c.Base, c.Sender}
	id := fmt.Sprintf("honest-%d-%d", os.Getpid(), i/3)
	// Any server may close an idle connection just when a request is sent on it. With this header Go's
	// client sends the request again, which the task's id makes safe.
	again := "Idempotency-Key: " + id
	switch i % 3 {
	case 0:
		_, err := sender.send(ctx, "echo", id, "hello", again)
		return err
	case 1:
		_, err := sender.task(ctx, "echo", "tasks/get", object{"id": id}, again)
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Base+"/api/v1/orgs/honest/proposals", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.Reader)
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

func (s *siege) caller() caller { return caller{Base: s.base, Sender: s.honest.key, Reader: s.reader} }

// honestRun is a process of honest callers.
type honestRun struct {
	cmd *exec.Cmd
	in  io.Closer
	out *bufio.Reader
}

// startHonest starts honest callers; it returns once they call.
func (s *siege) startHonest(t *testing.T) *honestRun {
	t.Helper()
	config, err := json.Marshal(s.caller())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), must(os.Executable())(t))
	cmd.Env = append(os.Environ(), honestEnv+"="+string(config))
	cmd.Stderr = os.Stderr
	ownSession(cmd)
	in, out := must(cmd.StdinPipe())(t), must(cmd.StdoutPipe())(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h := &honestRun{cmd: cmd, in: in, out: bufio.NewReader(out)}
	must(h.out.ReadString('\n'))(t)
	return h
}

// stop ends the calls and returns the sightings.
func (h *honestRun) stop(t *testing.T) *sightings {
	t.Helper()
	_ = h.in.Close()
	var seen sightings
	err := json.NewDecoder(h.out).Decode(&seen)
	if end := h.cmd.Wait(); err == nil {
		err = end
	}
	if err != nil {
		t.Fatalf("honest callers: %v", err)
	}
	return &seen
}

// watch calls honestly for a while.
func (s *siege) watch(t *testing.T, d time.Duration) *sightings {
	h := s.startHonest(t)
	time.Sleep(d)
	return h.stop(t)
}

// mustBeUnharmed compares the durations of honest calls with those of a quiet server. Other work on
// this machine can only make calls slower, so a measurement over the limit is repeated; harm by the
// attack shows in all of them.
func mustBeUnharmed(t *testing.T, measure func() (quiet, during *sightings)) {
	t.Helper()
	const tries = 3
	for try := 1; ; try++ {
		quiet, during := measure()
		harm := during.harm(t, quiet)
		switch {
		case harm == "" || t.Failed():
			return
		case try == tries:
			t.Errorf("%s, in %d measurements", harm, tries)
			return
		}
		t.Logf("%s: measured again", harm)
	}
}

// harm describes how calls were slowed down; empty if they were not.
func (s *sightings) harm(t *testing.T, quiet *sightings) string {
	t.Helper()
	before, during := quiet.percentile(99), s.percentile(99)
	t.Logf("honest callers: %d calls, p50 %v, p99 %v (quiet: %v, %v)", len(s.Took), s.percentile(50), during,
		quiet.percentile(50), before)
	t.Logf("honest callers: p99 of sends %v, gets %v, lists %v", percentile(s.ByKind[0], 99), percentile(s.ByKind[1], 99),
		percentile(s.ByKind[2], 99))
	if limit := max(3*before, 25*time.Millisecond); soaking() && during > limit {
		return fmt.Sprintf("honest callers: p99 is %v beside the attack; want at most %v", during, limit)
	}
	return ""
}
