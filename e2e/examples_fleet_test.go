package e2e

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestExampleFleet runs the fleet until it has improved itself.
func TestExampleFleet(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "fleet")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../examples/fleet")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	listen := "127.0.0.1:" + strconv.Itoa(freePort(t))
	out, err := exec.CommandContext(t.Context(), program, "-once", "-listen", listen, "-decide", "100ms",
		"-pause", "100ms").CombinedOutput()
	if err != nil {
		t.Fatalf("the fleet: %v\n%s", err, out)
	}
	for _, want := range []string{
		"a person must read it", "agent:intake has filed", "dispatch  voted for", "its follow-up goes to agent:intake",
		"has added 'lb' to its handbook", "the fleet has improved",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
}
