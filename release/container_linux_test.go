package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// inside is a server in another root and in a network of its own, as in a container.
type inside struct {
	root, user string
	env        []string
	cmd        *exec.Cmd
	done       chan error
	out        said
}

// said collects what a server says, and may be read meanwhile.
type said struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *said) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

// asRoot returns a command that root runs, if need be by sudo.
func asRoot(args ...string) *exec.Cmd {
	if os.Geteuid() != 0 {
		args = append([]string{"sudo", "--non-interactive"}, args...)
	}
	return exec.Command(args[0], args[1:]...)
}

// startInside starts a program. Its environment is env and nothing else.
func startInside(t *testing.T, root, user string, env []string, program ...string) *inside {
	t.Helper()
	c := &inside{root: root, user: user, env: env, done: make(chan error, 1)}
	c.cmd = asRoot(append([]string{
		"unshare", "--net", "--", "sh", "-c", `ip link set lo up && exec "$@"`, "sh",
	}, c.command(program...)...)...)
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.out
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { c.done <- c.cmd.Wait() }()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		if t.Failed() {
			t.Logf("the server said:\n%s", c.words())
		}
	})
	return c
}

func (c *inside) command(program ...string) []string {
	args := append([]string{"env", "-i"}, c.env...)
	// The program of chroot gets the environment of env.
	return append(append(args, "/usr/sbin/chroot", "--userspec="+c.user, c.root), program...)
}

// inside runs another program beside the server and returns what it prints.
func (c *inside) inside(program ...string) (string, error) {
	out, err := asRoot(append([]string{"nsenter", "--target", strconv.Itoa(c.pid()), "--net", "--"},
		c.command(program...)...)...).CombinedOutput()
	return string(out), err
}

// pid returns the process of the server: unshare, sh, env and chroot become it, sudo stays its parent.
func (c *inside) pid() int {
	if os.Geteuid() == 0 {
		return c.cmd.Process.Pid
	}
	out, _ := exec.Command("pgrep", "--parent", strconv.Itoa(c.cmd.Process.Pid)).Output()
	pid, _ := strconv.Atoi(strings.TrimSpace(string(out)))
	return pid
}

// stop ends the server as a service manager does, and returns how it ended.
func (c *inside) stop() error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-c.done:
		return err
	case <-time.After(time.Minute):
		return errors.New("it does not stop")
	}
}

func (c *inside) words() string {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	return c.out.b.String()
}
