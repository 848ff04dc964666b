package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/servertest"
)

// program is the driver program of an SDK; see README.md.
type program struct {
	args []string // command line
	dir  string   // working directory; this one if empty
	env  []string // in addition to that of the contract
}

// event is one line that a driver prints.
type event struct {
	Event   string
	Task    string
	Attempt int
	Reason  string
	Text    string
	Status  int
}

// driver is a running driver program, or one that has ended.
type driver struct {
	cmd    *exec.Cmd
	stdout journal
	stderr servertest.Output
	done   chan struct{}
	err    error // of the process, once done is closed
	killed bool
}

// start starts the program with the environment of the contract.
func (p *program) start(t *testing.T, env ...string) *driver {
	t.Helper()
	d := &driver{cmd: exec.Command(p.args[0], p.args[1:]...), done: make(chan struct{})}
	d.cmd.Dir, d.cmd.Env = p.dir, servertest.Environ(slices.Concat(p.env, env)...)
	d.cmd.Stdout, d.cmd.Stderr = &d.stdout, &d.stderr
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		d.err = d.cmd.Wait()
		close(d.done)
	}()
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill()
		<-d.done
		if t.Failed() {
			last := d.stdout.events[max(0, len(d.stdout.events)-20):]
			t.Logf("the driver printed at the end:\n%+v\nand logged:\n%s", last, d.stderr.Tail(5000))
		}
	})
	return d
}

// journal parses the lines that a driver prints as they arrive.
type journal struct {
	mu     sync.Mutex
	rest   []byte // of an unfinished line
	events []event
	err    error // of the first line that is not an event
}

// Write implements io.Writer.
func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.rest = append(j.rest, p...)
	for {
		line, rest, whole := bytes.Cut(j.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil && j.err == nil {
			j.err = fmt.Errorf("the driver printed %q: %w", line, err)
		}
		j.events, j.rest = append(j.events, e), rest
	}
}

// events returns what the driver has printed so far.
func (d *driver) events(t *testing.T) []event {
	t.Helper()
	d.stdout.mu.Lock()
	defer d.stdout.mu.Unlock()
	if d.stdout.err != nil {
		t.Fatal(d.stdout.err)
	}
	return d.stdout.events[:len(d.stdout.events):len(d.stdout.events)]
}

// count returns how many events of a kind the driver has printed, about one task or about all if
// uid is empty.
func (d *driver) count(t *testing.T, kind, uid string) (n int) {
	t.Helper()
	for _, e := range d.events(t) {
		if e.Event == kind && (uid == "" || e.Task == uid) {
			n++
		}
	}
	return n
}

// await waits until the driver has printed n events of a kind, and returns the last of them.
func (d *driver) await(t *testing.T, kind string, n int) event {
	t.Helper()
	await(t, fmt.Sprintf("%d events %q of the driver", n, kind), d.ended, func() bool { return d.count(t, kind, "") >= n })
	all := slices.Clone(d.events(t))
	slices.Reverse(all)
	return all[slices.IndexFunc(all, func(e event) bool { return e.Event == kind })]
}

// ended returns an error if the process has ended.
func (d *driver) ended() error {
	select {
	case <-d.done:
		return fmt.Errorf("the driver has ended: %w", errors.Join(d.err, errors.New(strings.TrimSpace(d.stderr.Tail(500)))))
	default:
		return nil
	}
}

// exit waits for the end of the process.
func (d *driver) exit(t *testing.T) error {
	t.Helper()
	select {
	case <-d.done:
		return d.err
	case <-time.After(patience):
		t.Fatalf("the driver did not end within %v", patience)
		return nil
	}
}

// stop sends SIGTERM, waits for the end and checks it.
func (d *driver) stop(t *testing.T) {
	t.Helper()
	d.term(t)
	if err := d.exit(t); err != nil {
		t.Errorf("the driver ended after SIGTERM with %v, want exit code 0", err)
	}
	if all := d.events(t); len(all) == 0 || all[len(all)-1].Event != "stopped" {
		t.Errorf("the last event is not \"stopped\": %+v", all)
	}
}

func (d *driver) term(t *testing.T) {
	t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("SIGTERM: %v; %v", err, d.ended())
	}
}

// kill ends the process without any warning.
func (d *driver) kill() {
	d.killed = true
	_ = d.cmd.Process.Kill()
	<-d.done
}
