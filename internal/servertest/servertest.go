// Package servertest builds programs of this module and runs servers as separate processes, for
// tests and benchmarks that see what a user sees.
//
// It knows only a server's output (its URL, the first key) and its readiness path. Its functions
// return errors instead of failing a test, because benchmarks use them too.
package servertest

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Patience bounds every wait; all of them end early when their condition holds.
const Patience = time.Minute

// Secret matches the secret of a key.
var Secret = regexp.MustCompile(`parley_[0-9A-Za-z]{36}`)

// address matches the first URL that a server prints and the character after it, so that no
// partial URL matches.
var address = regexp.MustCompile(`(https?://[^\s"/]+)[\s"/]`)

// Process is a server that runs or has ended.
type Process struct {
	Cmd  *exec.Cmd
	URL  string // as printed, such as http://127.0.0.1:41234
	Key  string // the first key; empty unless one was printed
	Done chan struct{}

	Stdout, Stderr Output
	Said           Output // both, in order of arrival

	err error // of the process, once Done is closed
}

// Start starts a server and waits until the path ready returns 200. The Process owns the command's
// output.
func Start(cmd *exec.Cmd, ready string) (*Process, error) {
	p := &Process{Cmd: cmd, Done: make(chan struct{})}
	p.Stdout.also, p.Stderr.also = &p.Said, &p.Said
	cmd.Stdout, cmd.Stderr = &p.Stdout, &p.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = cmd.Wait()
		close(p.Done)
	}()
	if err := p.await(ready); err != nil {
		p.Kill()
		return nil, fmt.Errorf("%s: %w; it said:\n%s", cmd.Path, err, p.Said.Tail(4000))
	}
	p.Key = Secret.FindString(p.Stdout.String())
	return p, nil
}

// The certificate of a server under test is self-signed.
var prober = &http.Client{
	Timeout: 10 * time.Second,
	Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // as above
	},
}

func (p *Process) await(ready string) error {
	last := errors.New("no address was printed")
	for deadline := time.Now().Add(Patience); time.Now().Before(deadline); {
		select {
		case <-p.Done:
			return fmt.Errorf("the server ended instead of serving: %w", cause(p.err))
		case <-time.After(5 * time.Millisecond):
		}
		if p.URL == "" {
			m := address.FindStringSubmatch(p.Stdout.String())
			if m == nil {
				continue
			}
			p.URL = m[1]
		}
		if last = probe(p.URL + ready); last == nil {
			return nil
		}
	}
	return fmt.Errorf("the server was not ready within %v: %w", Patience, last)
}

func cause(err error) error {
	if err == nil {
		return errors.New("without an error")
	}
	return err
}

func probe(url string) error {
	res, err := prober.Get(url)
	if err != nil {
		return err
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, res.Status)
	}
	return nil
}

// Kill ends the server as a power cut would, without any warning.
func (p *Process) Kill() {
	_ = p.Cmd.Process.Kill()
	<-p.Done
}

// Stop sends the signal and returns how the server ended.
func (p *Process) Stop(sig syscall.Signal) error {
	if err := p.Cmd.Process.Signal(sig); err != nil {
		return err
	}
	return p.Wait()
}

// Wait returns how the server ended; one that does not end is killed.
func (p *Process) Wait() error {
	select {
	case <-p.Done:
		return p.err
	case <-time.After(Patience):
		p.Kill()
		return fmt.Errorf("the server did not end within %v", Patience)
	}
}

// Run runs a command to its end and returns its trimmed output.
func Run(cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, &stderr)
	}
	return strings.TrimSpace(stdout.String()), nil
}

// Environ returns the environment without PARLEY_* variables of the caller. A server with it stops
// without waiting for a load balancer.
func Environ(extra ...string) []string {
	var out []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "PARLEY_") {
			out = append(out, e)
		}
	}
	return append(append(out, "NO_PROXY=127.0.0.1", "PARLEY_SHUTDOWN_DELAY=0s"), extra...)
}

// Output collects the output of a process and may be read meanwhile.
type Output struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	also *Output
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.also != nil {
		_, _ = o.also.Write(p) // never fails
	}
	return o.buf.Write(p)
}

// String returns all of it.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// Tail returns the last n bytes.
func (o *Output) Tail(n int) string {
	s := o.String()
	if len(s) > n {
		return "… " + s[len(s)-n:]
	}
	return s
}
