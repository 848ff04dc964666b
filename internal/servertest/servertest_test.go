package servertest

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

func TestAServerThatEndsIsNoServer(t *testing.T) {
	t.Parallel()
	for script, want := range map[string][]string{
		"echo why >&2; exit 3":                             {"ended instead of serving", "exit status 3", "why"},
		"echo http://127.0.0.1:1; echo later":              {"ended instead of serving", "later"},
		"echo Parley is listening on http://a; kill -9 $$": {"ended instead of serving", "killed"},
	} {
		_, err := Start(exec.Command("sh", "-c", script), "/")
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: got %v, want an error with %q", script, err, w)
			}
		}
	}
	if _, err := Start(exec.Command("/no/such/program"), "/"); err == nil {
		t.Error("a program that does not exist: got no error, want one")
	}
}

func TestWhatIsSaidIsKeptApartAndTogether(t *testing.T) {
	t.Parallel()
	p := &Process{Done: make(chan struct{})}
	p.Stdout.also, p.Stderr.also = &p.Said, &p.Said
	for _, w := range []struct {
		to   *Output
		text string
	}{{&p.Stdout, "one "}, {&p.Stderr, "two "}, {&p.Stdout, "three"}} {
		if _, err := w.to.Write([]byte(w.text)); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct{ got, want string }{
		"stdout": {
			p.Stdout.String(), "one three",
		}, "stderr": {p.Stderr.String(), "two "}, "both": {p.Said.String(), "one two three"},
		"the end": {p.Said.Tail(5), "… three"}, "all of it": {p.Said.Tail(13), "one two three"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", name, c.got, c.want)
		}
	}
}

func TestRunSaysWhatWentWrong(t *testing.T) {
	t.Parallel()
	if got, err := Run(exec.Command("sh", "-c", "echo; echo ' ok '; echo no >&2")); got != "ok" || err != nil {
		t.Errorf("got %q, %v; want ok", got, err)
	}
	if _, err := Run(exec.Command("sh", "-c", "echo no >&2; exit 4")); err == nil || !strings.Contains(err.Error(), "no") {
		t.Errorf("got %v, want an error with what was said", err)
	}
}

func TestTheEnvironmentHasNoSettings(t *testing.T) {
	t.Setenv("PARLEY_DATA", "/somewhere")
	env := strings.Join(Environ("PARLEY_KEY=k"), "\n")
	if strings.Contains(env, "PARLEY_DATA=") || !strings.Contains(env, "PARLEY_KEY=k") || !strings.Contains(env, "PATH=") {
		t.Errorf("got\n%s\nwant no PARLEY_DATA, but PARLEY_KEY and PATH", env)
	}
}

func TestStopReturnsHowAServerEnded(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sh", "-c", "trap 'exit 5' TERM; echo started; while :; do sleep 0.01; done")
	p := &Process{Cmd: cmd, Done: make(chan struct{})}
	cmd.Stdout = &p.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.Done)
	}()
	for p.Stdout.String() == "" {
		select {
		case <-p.Done:
			t.Fatalf("got %v, want it to run", p.err)
		default:
		}
	}
	if err := p.Stop(syscall.SIGTERM); err == nil || !strings.Contains(err.Error(), "exit status 5") {
		t.Errorf("got %v, want exit status 5", err)
	}
}
