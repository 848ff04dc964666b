package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/parley-dev/parley/internal/pgtest"
	"github.com/parley-dev/parley/internal/servertest"
)

func TestOnSQLite(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"testdata/both", "testdata/sqlite"} {
		testscript.Run(t, params(dir, ""))
	}
}

func TestOnPostgres(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("testdata/both/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), ".txtar"), func(t *testing.T) {
			t.Parallel()
			p := params("", pgtest.URL(t))
			p.Files = []string{script}
			testscript.Run(t, p)
		})
	}
}

// params returns the parameters of scripts. Their servers use the database, or the folder
// parley-data if it is empty; $STORE is the flag that names that store. It is not in the
// environment, where PARLEY_SERVER would be in conflict with it.
func params(dir, database string) testscript.Params {
	return testscript.Params{
		Dir:                dir,
		RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			examples, err := filepath.Abs("../../examples")
			if err != nil {
				return err
			}
			store := "--data=parley-data"
			if database != "" {
				store = "--database=" + database
			}
			e.Vars = append(e.Vars, cleanEnv(e.WorkDir, "STORE="+store, "EXAMPLES="+examples)...)
			e.Values[serverKey{}] = new(*servertest.Process)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"server":     serverCmd,
			"exits":      exitsCmd,
			"eventually": eventuallyCmd,
			"field":      fieldCmd,
			"capture":    captureCmd,
			"setjson":    setJSONCmd,
			"needs":      needsCmd,
			"logged":     loggedCmd,
		},
	}
}

type serverKey struct{}

// settings are the variables of a script that reach the server it starts.
var settings = []string{"PARLEY_DATA", "PARLEY_CONFIG", "PARLEY_LISTEN", "PARLEY_RATE_LIMIT", "PARLEY_LOG_FORMAT"}

// namesStore reports whether a flag or a variable says where the data is.
func namesStore(s string) bool {
	return strings.HasPrefix(s, "--data") || strings.HasPrefix(s, "PARLEY_DATA=") || strings.HasPrefix(s, "PARLEY_CONFIG=")
}

// serverCmd is "server start [flags]", which sets PARLEY_SERVER, ADDRESS and, on an empty
// store, PARLEY_KEY, and writes the output to serve.out and serve.err; or "server stop",
// which requires a clean end; or "server kill".
func serverCmd(ts *testscript.TestScript, neg bool, args []string) {
	held := ts.Value(serverKey{}).(**servertest.Process)
	switch {
	case neg || len(args) == 0:
		ts.Fatalf("usage: server start|stop|kill")
	case args[0] == "start":
		environ := cleanEnv(ts.Getenv("WORK"))
		for _, name := range settings {
			if v := ts.Getenv(name); v != "" {
				environ = append(environ, name+"="+v)
			}
		}
		args = args[1:]
		if !slices.ContainsFunc(append(args, environ...), namesStore) {
			args = append([]string{ts.Getenv("STORE")}, args...)
		}
		if !slices.Contains(args, "--listen") {
			addr, err := ownPort()
			ts.Check(err)
			args = append([]string{"--listen", addr}, args...)
		}
		s, err := startServer(ts.MkAbs("."), environ, args...)
		ts.Check(err)
		*held = s
		ts.Defer(func() { s.Kill() })
		ts.Setenv("PARLEY_SERVER", s.URL)
		ts.Setenv("ADDRESS", strings.TrimPrefix(s.URL, "http://"))
		if s.Key != "" {
			ts.Setenv("PARLEY_KEY", s.Key)
		}
		ts.Check(os.WriteFile(ts.MkAbs("serve.out"), []byte(s.Stdout.String()), 0o600))
	case args[0] == "kill":
		(*held).Kill()
	case args[0] == "stop":
		s := *held
		ts.Check(s.Stop(syscall.SIGTERM))
		ts.Check(os.WriteFile(ts.MkAbs("serve.err"), []byte(s.Stderr.String()), 0o600))
	}
}

// exitsCmd is "exits CODE COMMAND…".
func exitsCmd(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d; want %d", got, want)
	}
}

// eventuallyCmd is "[!] eventually COMMAND…": it repeats the command until it
// succeeds, or fails.
func eventuallyCmd(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(eventually(func() error {
		err := ts.Exec(args[0], args[1:]...)
		switch {
		case !neg:
			return err
		case err == nil:
			return fmt.Errorf("%s still succeeds", strings.Join(args, " "))
		}
		return nil
	}))
}

// lookup finds a dotted path such as "proposals.0.id" in the last command's JSON.
func lookup(ts *testscript.TestScript, path string) any {
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &v))
	for part := range strings.SplitSeq(path, ".") {
		switch node := v.(type) {
		case map[string]any:
			next, ok := node[part]
			if !ok {
				ts.Fatalf("%s: no %q", path, part)
			}
			v = next
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(node) {
				ts.Fatalf("%s: no element %q of %d", path, part, len(node))
			}
			v = node[i]
		default:
			ts.Fatalf("%s: %v has no parts", path, v)
		}
	}
	return v
}

// fieldCmd is "field PATH WANT", or "field PATH", which requires that the field exists.
func fieldCmd(ts *testscript.TestScript, neg bool, args []string) {
	got := fmt.Sprint(lookup(ts, args[0]))
	if len(args) > 1 && (got == args[1]) == neg {
		ts.Fatalf("%s is %q; want %q (negated: %t)", args[0], got, args[1], neg)
	}
}

// captureCmd is "capture VAR": it keeps the last command's stdout.
func captureCmd(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// setJSONCmd is "setjson VAR PATH": it keeps a value of the last command's JSON.
func setJSONCmd(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(args[0], fmt.Sprint(lookup(ts, args[1])))
}

// needsCmd is "needs PROGRAM…": it fails if one of them is not installed.
func needsCmd(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		if _, err := exec.LookPath(name); err != nil {
			ts.Fatalf("%s is not installed, and an example needs it: apt-get install %s", name, name)
		}
	}
}

var logTime = regexp.MustCompile(`^time=(\S+)`)

// loggedCmd is "logged FILE PATTERN": it waits until a line of the file matches. With
// "logged FILE PATTERN SINCE LIMIT" the time in the line must be at most LIMIT after SINCE.
func loggedCmd(ts *testscript.TestScript, _ bool, args []string) {
	pattern, err := regexp.Compile(args[1])
	ts.Check(err)
	var found string
	ts.Check(eventually(func() error {
		data, err := os.ReadFile(ts.MkAbs(args[0]))
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(data)) {
			if pattern.MatchString(line) {
				found = line
				return nil
			}
		}
		return fmt.Errorf("%s has no line with %q:\n%s", args[0], args[1], data)
	}))
	if len(args) == 2 {
		return
	}
	m := logTime.FindStringSubmatch(found)
	if m == nil {
		ts.Fatalf("no time in %q", found)
	}
	at, err := time.Parse(time.RFC3339Nano, m[1])
	ts.Check(err)
	since, err := time.Parse(time.RFC3339Nano, args[2])
	ts.Check(err)
	limit, err := time.ParseDuration(args[3])
	ts.Check(err)
	ts.Logf("it took %s", at.Sub(since))
	if at.Sub(since) > limit {
		ts.Fatalf("it took %s; at most %s is allowed: %s", at.Sub(since), limit, found)
	}
}
