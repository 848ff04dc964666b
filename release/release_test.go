package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// soak reports whether the long tests run too.
func soak() bool { return os.Getenv("PARLEY_SOAK") != "" }

// scratch is for what the tests share.
var scratch string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "parley-release-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	scratch = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// newTestRelease returns a release for Linux on the processor of this machine.
func newTestRelease(out string, platforms ...platform) *release {
	if len(platforms) == 0 {
		platforms = []platform{{"linux", runtime.GOARCH}}
	}
	root, err := filepath.Abs("..")
	if err != nil {
		panic(err)
	}
	return &release{
		root: root, out: out, version: "1.2.3-rc.1", when: time.Date(2026, 1, 31, 12, 30, 45, 0, time.UTC),
		platforms: platforms, say: func(string, ...any) {}, quick: !soak(),
	}
}

// built is made once for all tests.
var built = sync.OnceValues(func() (*release, error) {
	r := newTestRelease(filepath.Join(scratch, "dist"))
	return r, r.make()
})

func theRelease(t *testing.T) *release {
	t.Helper()
	r, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// venv returns the virtual environment with the checkers.
func venv(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("../scripts/venv", "requirements.txt").Output()
	if err != nil {
		t.Fatalf("scripts/venv: %v", err)
	}
	return strings.TrimSpace(string(out))
}

func TestDescribedVersion(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"v1.2.3-0-gabcdef":             "1.2.3",
		"v1.2.3-4-gabcdef":             "1.2.3+4.gabcdef",
		"v1.2.3-rc.1-0-gabcdef":        "1.2.3-rc.1",
		"v1.2.3-rc.1-4-gabcdef":        "1.2.3-rc.1+4.gabcdef",
		"v1.2.3-0-gabcdef-dirty":       "1.2.3-dirty",
		"v1.2.3-4-gabcdef-dirty":       "1.2.3+4.gabcdef-dirty",
		"abcdef012345":                 "0.0.0-dev.gabcdef012345",
		"abcdef012345-dirty":           "0.0.0-dev.gabcdef012345-dirty",
		"v1.2.3-rc.1-10-gabcdef-dirty": "1.2.3-rc.1+10.gabcdef-dirty",
	} {
		if got := describedVersion(in); got != want {
			t.Errorf("describedVersion(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestDebianVersionsAreInOrder(t *testing.T) {
	t.Parallel()
	versions := []string{"0.0.0-dev.gabc", "1.2.3-rc.1", "1.2.3-rc.1-dirty", "1.2.3", "1.2.3+4.gabc", "1.2.4"}
	for i := 1; i < len(versions); i++ {
		older, newer := debianVersion(versions[i-1]), debianVersion(versions[i])
		if out, err := exec.Command("dpkg", "--compare-versions", older, "lt", newer).CombinedOutput(); err != nil {
			t.Errorf("%s is not older than %s: %v %s", older, newer, err, out)
		}
	}
}

func TestTwoRunsGiveTheSameBytes(t *testing.T) {
	first := theRelease(t)
	second := newTestRelease(filepath.Join(scratch, "again"))
	if soak() { // all platforms, compiled anew in another folder
		var all []platform
		for _, name := range allPlatforms {
			p, err := parsePlatform(name)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, p)
		}
		first = newTestRelease(filepath.Join(scratch, "all"), all...)
		if err := first.make(); err != nil {
			t.Fatal(err)
		}
		second = newTestRelease(filepath.Join(scratch, "again"), all...)
		second.root, second.cache = copyRepository(t), t.TempDir()
	}
	if err := second.make(); err != nil {
		t.Fatal(err)
	}
	sums := func(r *release) string {
		b, err := os.ReadFile(filepath.Join(r.out, "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if a, b := sums(first), sums(second); a != b {
		t.Errorf("two runs differ:\n%s\n%s", a, b)
	}
	check := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	check.Dir = second.out
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// copyRepository returns a copy of what git knows, in a folder with another name.
func copyRepository(t *testing.T) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "elsewhere")
	list, err := exec.Command("git", "-C", "..", "ls-files", "-z").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(list), "\x00"), "\x00") {
		b, err := os.ReadFile(filepath.Join("..", name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed, without a commit
		}
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}

func TestArchiveHasTheProgramAndItsDocuments(t *testing.T) {
	t.Parallel()
	r := theRelease(t)
	p := r.platforms[0]
	f, err := os.Open(r.path(p.name() + ".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	folder := "parley_1.2.3-rc.1_" + p.name() + "/"
	program := filepath.Join(t.TempDir(), "parley")
	var names []string
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || !h.ModTime.Equal(r.when) {
			t.Errorf("%s: owner %d:%d %q, time %s", h.Name, h.Uid, h.Gid, h.Uname, h.ModTime)
		}
		names = append(names, strings.TrimPrefix(h.Name, folder))
		if h.Name == folder+"parley" {
			b, err := io.ReadAll(tr)
			if err == nil {
				err = os.WriteFile(program, b, fs.FileMode(h.Mode))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("the entries are not sorted: %v", names)
	}
	for _, want := range []string{
		"parley", "completions/_parley", "completions/parley.bash", "completions/parley.fish", "man/man1/parley.1",
		"man/man1/parley-serve.1", "man/man1/parley-proposal-submit.1", "LICENSE", "THIRD-PARTY-NOTICES", "README.md",
		"CHANGELOG.md",
	} {
		if !slices.Contains(names, want) {
			t.Errorf("the archive lacks %s", want)
		}
	}
	if runtime.GOOS != "linux" {
		return // the program is for another system
	}
	if out, err := exec.Command(program, "version").Output(); err != nil || string(out) != "parley 1.2.3-rc.1\n" {
		t.Errorf("version = %q, %v", out, err)
	}
	if out, err := exec.Command("ldd", program).CombinedOutput(); err == nil {
		t.Errorf("the program is not static: %s", out)
	}
}

func TestZipKeepsModesAndTime(t *testing.T) {
	t.Parallel()
	when := time.Date(2026, 1, 31, 12, 30, 44, 0, time.UTC)
	var b bytes.Buffer
	if err := writeZip(&b, inFolder("x", []file{{"parley.exe", 0o755, []byte("MZ")}, {"man/a.1", 0o644, []byte(".TH")}}), when); err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range z.File {
		got = append(got, fmt.Sprint(f.Name, " ", f.Mode(), " ", f.Modified.Equal(when)))
	}
	want := []string{"x/ drwxr-xr-x true", "x/man/ drwxr-xr-x true", "x/man/a.1 -rw-r--r-- true", "x/parley.exe -rwxr-xr-x true"}
	if !slices.Equal(got, want) {
		t.Errorf("entries = %q, want %q", got, want)
	}
}

// TestBillListsTheModules compares the bill of materials with what the go command says is linked.
func TestBillListsTheModules(t *testing.T) {
	t.Parallel()
	r := theRelease(t)
	p := r.platforms[0]
	text, err := os.ReadFile(r.path(p.name() + ".cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var doc sbom
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	check := exec.Command(filepath.Join(venv(t), "bin", "python"), "-c", `import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
sys.exit(str(JsonStrictValidator(SchemaVersion.V1_6).validate_str(sys.stdin.read()) or "") or 0)`)
	check.Stdin = bytes.NewReader(text)
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("not a valid document: %v\n%s", err, out)
	}
	if c := doc.Metadata.Component; c.Version != r.version || len(c.Hashes) != 1 {
		t.Errorf("the application is %+v", c)
	}
	var got []string
	for _, c := range doc.Components {
		if c.Name != "std" {
			got = append(got, c.Name+" "+c.Version)
		}
	}
	out, err := r.run(r.goEnv(p), "go", "list", "-deps", "-f",
		"{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "./cmd/parley")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })
	slices.Sort(want)
	slices.Sort(got)
	if want = slices.Compact(want); !slices.Equal(got, want) || len(got) < 20 {
		t.Errorf("modules = %v\nwant %v", got, want)
	}
}
