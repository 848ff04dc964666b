package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

var allPlatforms = []string{
	"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64",
}

// platform is what a binary is for.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// name is the platform in file names.
func (p platform) name() string { return p.os + "_" + p.arch }

func (p platform) program() string {
	if p.os == "windows" {
		return "parley.exe"
	}
	return "parley"
}

func parsePlatform(s string) (platform, error) {
	if !slices.Contains(allPlatforms, s) {
		return platform{}, fmt.Errorf("unknown platform %q; the platforms are %s", s, strings.Join(allPlatforms, ", "))
	}
	os, arch, _ := strings.Cut(s, "/")
	return platform{os, arch}, nil
}

// run runs a command in the repository and returns what it prints on stdout.
func (r *release) run(env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = r.root, append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, stderr.Bytes())
	}
	return stdout.Bytes(), nil
}

// goEnv fixes what changes the result of a build. The rest is the caller's.
func (r *release) goEnv(p platform) []string {
	if r.quick {
		return nil
	}
	env := []string{
		"CGO_ENABLED=0", "GOOS=" + p.os, "GOARCH=" + p.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOWORK=off",
		"GOEXPERIMENT=",
	}
	if r.cache != "" {
		env = append(env, "GOCACHE="+r.cache)
	}
	return env
}

// build compiles the binary for a platform and returns its path. Paths of this machine, the build id
// and the state of git stay out of it.
func (r *release) build(work string, p platform) (string, error) {
	r.say("binary for %s", p)
	out := filepath.Join(work, p.name(), p.program())
	ldflags := "-s -w -buildid= -X github.com/parley-dev/parley/internal/app.version=" + r.version
	if r.quick {
		ldflags += " -linkmode external -extldflags -static"
	}
	_, err := r.run(r.goEnv(p), "go", append(r.goBuild("build"), "-ldflags", ldflags, "-o", out, "./cmd/parley")...)
	return out, err
}

// goBuild returns the arguments of the go command that compile.
func (r *release) goBuild(verb string) []string {
	args := []string{verb, "-buildvcs=false"}
	if !r.quick {
		args = append(args, "-trimpath")
	}
	return args
}

// extras are the files beside the binary.
type extras struct {
	completions map[string][]byte // by shell
	man         []file            // sorted by name
}

// extras makes the completions and the manual pages with programs for this machine.
func (r *release) extras(work string) (extras, error) {
	host := platform{runtime.GOOS, runtime.GOARCH}
	program, dir := filepath.Join(work, "host", host.program()), filepath.Join(work, "man")
	x := extras{completions: map[string][]byte{}}
	if _, err := r.run(r.goEnv(host), "go", append(r.goBuild("build"), "-o", program, "./cmd/parley")...); err != nil {
		return x, err
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script, err := r.run(nil, program, "completion", shell)
		if err != nil {
			return x, err
		}
		x.completions[shell] = script
	}
	if _, err := r.run(r.goEnv(host), "go", append(r.goBuild("run"), "./scripts/manpages", "-out", dir,
		"-version", r.version, "-date", r.when.Format(time.DateOnly))...); err != nil {
		return x, err
	}
	entries, err := os.ReadDir(dir) // sorted
	if err != nil {
		return x, err
	}
	for _, e := range entries {
		page, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return x, err
		}
		x.man = append(x.man, file{e.Name(), 0o644, page})
	}
	return x, nil
}

// gitVersion returns the version of the working tree: 1.2.3 for the commit with the tag v1.2.3,
// 1.2.3+4.gabcdef for the fourth one after it, and 0.0.0-dev.gabcdef without a tag. -dirty says that
// there are changes without a commit.
func gitVersion(root string) (string, error) {
	r := &release{root: root}
	out, err := r.run(nil, "git", "describe", "--tags", "--long", "--always", "--dirty", "--abbrev=12", "--match", "v[0-9]*")
	if err != nil {
		return "", fmt.Errorf("%w; outside of git, name the version with -version", err)
	}
	return describedVersion(strings.TrimSpace(string(out))), nil
}

// describedVersion turns what git describe --long prints into a version.
func describedVersion(s string) string {
	s, isDirty := strings.CutSuffix(s, "-dirty")
	parts := strings.Split(strings.TrimPrefix(s, "v"), "-")
	version := "0.0.0-dev.g" + s
	if n := len(parts); n > 2 {
		version = strings.Join(parts[:n-2], "-")
		if parts[n-2] != "0" {
			version += "+" + parts[n-2] + "." + parts[n-1]
		}
	}
	if isDirty {
		version += "-dirty"
	}
	return version
}

// sourceDate returns the time for all files: SOURCE_DATE_EPOCH, or that of the commit.
func sourceDate(root string) (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		r := &release{root: root}
		out, err := r.run(nil, "git", "log", "-1", "--format=%ct")
		if err != nil {
			return time.Time{}, fmt.Errorf("%w; outside of git, set SOURCE_DATE_EPOCH", err)
		}
		text = strings.TrimSpace(string(out))
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH must be a number of seconds; it is %q", text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}
