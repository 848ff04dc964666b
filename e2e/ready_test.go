package e2e

import (
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestFullDisk fills the disk of a running server: /readyz reports it, requests get 503, and both
// recover when there is space again.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", dir).CombinedOutput(); err != nil {
		const why = "this test mounts a small disk, which takes the rights of root"
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s: %s", why, out)
		}
		t.Skipf("%s: %s", why, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
	s := serve(t, engine{"sqlite", []string{"--data", filepath.Join(dir, "data")}})
	o := newTaskOrg(t, s, "acme")
	ready := func() (int, string) {
		res := must(http.Get(s.base + "/readyz"))(t)
		defer func() { _ = res.Body.Close() }()
		b, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(b)
	}
	ballast := filepath.Join(dir, "ballast")
	fill := func() {
		f := must(os.OpenFile(ballast, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600))(t)
		defer func() { _ = f.Close() }()
		for block := make([]byte, 4096); ; {
			if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
				return
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
	fill()
	eventually(t, soon, "/readyz says that the disk is full", func() bool {
		status, body := ready()
		return status == http.StatusServiceUnavailable && strings.Contains(body, "the disk of the store is full")
	})
	a, err := o.peer().call(t.Context(), "echo", "tasks/send", object{"id": "t", "message": text("x")})
	if err != nil || a.status != http.StatusServiceUnavailable || a.Error == nil {
		t.Errorf("send on a full disk = %+v, %v; want 503 with an error", a, err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	eventually(t, soon, "the server is ready again", func() bool { status, _ := ready(); return status == http.StatusOK })
	must(o.peer().send(t.Context(), "echo", "t2", "x"))(t)
}
