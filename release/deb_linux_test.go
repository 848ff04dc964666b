package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

func thePackage(t *testing.T) string {
	t.Helper()
	return filepath.Join(theRelease(t).out, "parley_1.2.3-rc.1_"+runtime.GOARCH+".deb")
}

// output runs a program and returns what it prints.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestDebianPackageHasEverythingInItsPlace(t *testing.T) {
	t.Parallel()
	deb := thePackage(t)
	list := output(t, "dpkg-deb", "--contents", deb)
	for _, want := range []string{
		`-rwxr-xr-x root/root +\d+ 2026-01-31 12:30 \./usr/bin/parley\n`,
		`-rw-r----- root/root +\d+ \S+ \S+ \./etc/parley/parley.env\n`,
		`-rw-r--r-- root/root +\d+ \S+ \S+ \./lib/systemd/system/parley.service\n`,
		`\./usr/share/man/man1/parley-serve.1.gz\n`,
		`\./usr/share/bash-completion/completions/parley\n`,
		`\./usr/share/zsh/vendor-completions/_parley\n`,
		`\./usr/share/fish/vendor_completions.d/parley.fish\n`,
		`\./usr/share/doc/parley/copyright\n`,
	} {
		if !regexp.MustCompile(want).MatchString(list) {
			t.Errorf("the package lacks %s:\n%s", want, list)
		}
	}
	if info := output(t, "dpkg-deb", "--field", deb, "Version", "Architecture"); info != "Version: 1.2.3~rc.1\nArchitecture: "+runtime.GOARCH+"\n" {
		t.Errorf("fields = %s", info)
	}
	for _, script := range []string{"postinst", "prerm", "postrm"} {
		output(t, "sh", "-n", filepath.Join("../deploy/debian", script))
	}
}

// TestUnitIsHardened has systemd check the unit and rate what the service could reach: 0 is nothing, 10
// is everything.
func TestUnitIsHardened(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	output(t, "dpkg-deb", "--extract", thePackage(t), root)
	unit := filepath.Join(root, "lib/systemd/system/parley.service")
	if said := output(t, "systemd-analyze", "verify", "--man=no", "--recursive-errors=no", standIn(t, unit)); strings.TrimSpace(said) != "" {
		t.Errorf("systemd-analyze verify: %s", said)
	}
	output(t, "systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=20", unit)
}

// standIn returns a copy of the unit whose program exists on this machine.
func standIn(t *testing.T, unit string) string {
	t.Helper()
	text, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "parley.service")
	text = []byte(strings.Replace(string(text), "/usr/bin/parley serve", "/bin/true serve", 1))
	if err := os.WriteFile(name, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// unitFile holds the settings of a unit that say how its program is started.
type unitFile struct {
	exec, user, group string
	env               []string
}

// readUnit reads a unit and its environment file below root.
func readUnit(t *testing.T, root, unit string) unitFile {
	t.Helper()
	var u unitFile
	env := map[string]string{"PATH": "/usr/bin:/bin"}
	each := func(file string, set func(key, value string)) {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(string(text), "\n") {
			if key, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
				set(key, value)
			}
		}
	}
	each(unit, func(key, value string) {
		switch key {
		case "ExecStart":
			u.exec = value
		case "User":
			u.user = value
		case "Group":
			u.group = value
		case "Environment":
			name, v, _ := strings.Cut(value, "=")
			env[name] = v
		case "EnvironmentFile":
			each(strings.TrimPrefix(value, "-"), func(name, v string) { env[name] = v })
		}
	})
	for name, v := range env {
		u.env = append(u.env, name+"="+v)
	}
	return u
}

// TestDebianPackageInAFreshRoot installs the package in a new Debian, starts the server as the unit says,
// and removes it.
func TestDebianPackageInAFreshRoot(t *testing.T) {
	if !soak() {
		t.Skip("runs with make soak only: it makes a Debian with debootstrap")
	}
	deb := thePackage(t)
	t.Run("lintian", func(t *testing.T) {
		output(t, "lintian", "--allow-root", "--fail-on", "error,warning", deb)
	})
	root := filepath.Join(scratch, "debian")
	output(t, "debootstrap", "--variant=minbase", "bookworm", root)
	in := func(args ...string) string {
		t.Helper()
		return output(t, "chroot", append([]string{root, "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive"}, args...)...)
	}
	output(t, "cp", deb, filepath.Join(root, "parley.deb"))
	in("dpkg", "--install", "/parley.deb")
	if got := in("stat", "--format=%U:%G %a", "/var/lib/parley"); got != "parley:parley 700\n" {
		t.Errorf("the data folder is %s", got)
	}
	if got := in("dpkg-query", "--show", "--showformat=${Conffiles}", "parley"); !strings.Contains(got, "/etc/parley/parley.env ") {
		t.Errorf("conffiles = %s", got)
	}

	u := readUnit(t, root, "lib/systemd/system/parley.service")
	notify := listenNotify(t, filepath.Join(root, "run/notify"))
	u.env = append(u.env, "NOTIFY_SOCKET=/run/notify")
	c := startInside(t, root, u.user+":"+u.group, u.env, strings.Fields(u.exec)...)
	if got := notify(); got != "READY=1" {
		t.Errorf("systemd is told %q, want READY=1", got)
	}
	if out, err := c.inside("parley", "health"); err != nil || !strings.Contains(out, "is ready") {
		t.Errorf("health = %q, %v", out, err)
	}
	if out, err := c.inside("parley", "key", "create", "--as", "user:admin", "--scope", "svc:tasks:read", "--data",
		"/var/lib/parley"); err != nil || !strings.Contains(out, "parley_") {
		t.Errorf("key create = %q, %v", out, err)
	}
	if err := c.stop(); err != nil {
		t.Errorf("stop: %v\n%s", err, c.words())
	}
	if got := notify(); got != "STOPPING=1" {
		t.Errorf("systemd is told %q, want STOPPING=1", got)
	}

	exists := func(name string) bool {
		_, err := os.Lstat(filepath.Join(root, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return err == nil
	}
	in("dpkg", "--install", "/parley.deb") // as an upgrade
	in("dpkg", "--remove", "parley")
	if !exists("var/lib/parley/parley.db") || !exists("etc/parley/parley.env") || exists("usr/bin/parley") {
		t.Error("remove must keep the data and the settings, and nothing else")
	}
	in("dpkg", "--purge", "parley")
	if exists("var/lib/parley") || exists("etc/parley") {
		t.Error("purge must remove the data and the settings")
	}
	if passwd, err := os.ReadFile(filepath.Join(root, "etc/passwd")); err != nil || strings.Contains(string(passwd), "parley") {
		t.Errorf("the user is still there, or %v", err)
	}
}

// listenNotify plays systemd: it returns the messages of a service, one a call.
func listenNotify(t *testing.T, name string) func() string {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := os.Chmod(name, 0o777); err != nil {
		t.Fatal(err)
	}
	return func() string {
		b := make([]byte, 256)
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		n, err := conn.Read(b)
		if err != nil {
			return fmt.Sprint(err)
		}
		return string(b[:n])
	}
}
