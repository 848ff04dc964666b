package e2e

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
)

// yieldProcessor lowers the priority of this process until restore is called, if times are
// compared. Real attackers have processors of their own; here they would take those of the server
// and of the honest callers, and the test would measure that.
func yieldProcessor(t *testing.T) (restore func()) {
	t.Helper()
	if !soaking() {
		return func() {}
	}
	setPriority(t, 15)
	return func() { setPriority(t, 0) }
}

// ownSession starts a command in its own session, if times are compared: Linux first shares the
// processors between sessions, and applies priorities within one.
func ownSession(cmd *exec.Cmd) {
	if soaking() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
}

// setPriority sets the nice value of this session and of every thread of this process. New threads
// inherit it. Raising the priority again needs root; without it the rest of the soak runs at the
// lower priority.
func setPriority(t *testing.T, nice int) {
	t.Helper()
	_ = os.WriteFile("/proc/self/autogroup", []byte(strconv.Itoa(nice)), 0) // if the kernel has it
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			t.Fatal(err)
		}
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, id, nice) // the thread may have ended
	}
}
