package cli

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/pgtest"
	"github.com/parley-dev/parley/internal/servertest"
)

var updateDocuments = flag.Bool("update", false, "rewrite the outputs that the documents show")

// TestDocuments runs the sh blocks of every document in order, in one shell session per
// document and against a fresh server, and compares what they print with the text or json
// block that follows. To rewrite the shown outputs, run it with -update and read the diff.
func TestDocuments(t *testing.T) {
	t.Parallel()
	for _, name := range documents(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := readDocument(t, name)
			doc.checkQuotes(t)
			if doc.has("sh") {
				doc.run(t)
			}
		})
	}
}

// documents returns the paths of all documents, relative to the repository.
func documents(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(names) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	for i, name := range names {
		names[i] = filepath.Join("docs", filepath.Base(name))
	}
	return append(names, "README.md", "CONTRIBUTING.md", "CHANGELOG.md")
}

// shownKey is the key that documents show as the one that the server printed.
const shownKey = "parley_8Nao8dM7EG5AJhTC1yHsS710WSTJrc3gMpUK"

// session is the shell session of one document.
type session struct {
	work string              // the working directory: stands in for the repository
	env  []string            // of the shell
	srv  *servertest.Process // what the document's serve command started
	real map[string]string   // what the document shows → what it is in this session
}

var (
	serveLine = regexp.MustCompile(`^(?:go run \./cmd/)?parley serve(| [^&]*)\n$`)
	// demoLine starts a demo. It does not serve the other commands of a document.
	demoLine = regexp.MustCompile(`^(?:go run \./cmd/)?parley serve --demo\n$`)
	// workerLine is a worker that a reader starts in another terminal. It runs in the background.
	workerLine = regexp.MustCompile(`^PARLEY_KEY=\$WORKER_KEY (?:go run|python3) [^&]*\n$`)
	shownPort  = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	shownURL   = regexp.MustCompile(`postgres://[^\s'"]+`)
)

func (d *document) run(t *testing.T) {
	t.Helper()
	s := startSession(t, d)
	script := "set -eu\n"
	place := map[int]int{} // block → index of its output
	for i, b := range d.blocks {
		switch {
		case b.lang == "sh" && demoLine.MatchString(b.text):
			startDemo(t)
		case b.lang == "sh" && workerLine.MatchString(b.text):
			script += strings.TrimSuffix(b.text, "\n") + " > /dev/null 2>&1 &\n"
		case b.lang == "sh" && !serveLine.MatchString(b.text):
			place[i] = len(place)
			script += b.text + "printf '" + separator + "'\n"
		case b.isFile():
			if err := os.WriteFile(filepath.Join(s.work, b.fileName()), []byte(b.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	out, err := s.exec(t, script)
	outputs := strings.Split(out, "\x1e")
	if err != nil {
		for i, at := range place {
			if at == len(outputs)-1 {
				t.Fatalf("%s:%d fails: %v\n%s%s", d.name, d.blocks[i].line, err, d.blocks[i].text, outputs[at])
			}
		}
		t.Fatalf("%s: %v\n%s", d.name, err, out)
	}
	s.checkSecrets(t, d.name)
	for i := len(d.blocks) - 1; i >= 0; i-- { // backwards, so that line numbers stay right
		b := d.blocks[i]
		if b.shows < 0 {
			continue
		}
		got := s.srv.Stdout.String() + s.srv.Stderr.String()
		if at, ok := place[b.shows]; ok {
			got = outputs[at]
		}
		diff := cmp.Diff(normal(b.lang, b.text), normal(b.lang, got))
		switch {
		case diff == "":
		case *updateDocuments:
			d.replace(t, b, s.shown(got))
		default:
			t.Errorf("%s:%d shows another output (-document +real):\n%s", d.name, b.line, diff)
		}
	}
}

// startSession starts the server of a document, with the flags that the document's serve
// command has, and prepares the environment of its shell.
func startSession(t *testing.T, d *document) *session {
	t.Helper()
	dir := t.TempDir()
	s := &session{work: filepath.Join(dir, "work"), real: map[string]string{}}
	for _, sub := range []string{"work", "home", "tmp", "shims"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(examples, filepath.Join(s.work, "examples")); err != nil {
		t.Fatal(err)
	}
	shims(t, filepath.Join(dir, "shims"))
	at := slices.IndexFunc(d.blocks, func(b block) bool {
		return b.lang == "sh" && serveLine.MatchString(b.text) && !demoLine.MatchString(b.text)
	})
	if at < 0 {
		t.Fatalf("%s has commands, but none that starts a server", d.name)
	}
	flags := strings.Fields(serveLine.FindStringSubmatch(d.blocks[at].text)[1])
	if s.srv, err = startServer(s.work, cleanEnv(dir), flags...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.srv.Kill)
	s.real[shownKey] = s.srv.Key
	s.real["127.0.0.1:8080"] = strings.TrimPrefix(s.srv.URL, "http://")
	for _, b := range d.blocks {
		if b.lang != "sh" {
			continue
		}
		for _, shown := range shownPort.FindAllString(b.text, -1) {
			if s.real[shown] == "" {
				if s.real[shown], err = ownPort(); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, shown := range shownURL.FindAllString(b.text, -1) {
			if s.real[shown] == "" {
				s.real[shown] = pgtest.URL(t)
			}
		}
	}
	s.env = cleanEnv(dir, "PARLEY_SERVER="+s.srv.URL) // stands in for the default server on port 8080
	for i, v := range s.env {
		switch name, value, _ := strings.Cut(v, "="); name {
		case "PATH":
			s.env[i] = "PATH=" + filepath.Join(dir, "shims") + string(os.PathListSeparator) + value
		case "HOME":
			s.env[i] = "HOME=" + filepath.Join(dir, "home")
		case "TMPDIR":
			s.env[i] = "TMPDIR=" + filepath.Join(dir, "tmp")
		}
	}
	return s
}

func (s *session) exec(t *testing.T, script string) (string, error) {
	t.Helper()
	for shown, now := range s.real {
		script = strings.ReplaceAll(script, shown, now)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	sh := exec.CommandContext(ctx, "sh", "-c", script)
	sh.Dir, sh.Env = s.work, s.env
	sh.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // background jobs end with the session
	sh.WaitDelay = time.Second                           // a background job may hold the pipe
	sh.Cancel = func() error { return syscall.Kill(-sh.Process.Pid, syscall.SIGKILL) }
	out, err := sh.CombinedOutput()
	_ = syscall.Kill(-sh.Process.Pid, syscall.SIGKILL)
	return string(out), err
}

// shown replaces what is special to this session by what the documents show.
func (s *session) shown(text string) string {
	for shown, now := range s.real {
		text = strings.ReplaceAll(text, now, shown)
	}
	return text
}

// checkSecrets fails if an example left a secret in the working directory.
func (s *session) checkSecrets(t *testing.T, name string) {
	t.Helper()
	err := filepath.WalkDir(s.work, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(path, "parley-data") { // the server signs with the secrets of webhooks
			data = webhookSecret.ReplaceAll(data, nil)
		}
		if secret := secrets.Find(data); secret != nil {
			t.Errorf("%s: an example writes the secret %s into %s", name, secret, filepath.Base(path))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

var secrets = regexp.MustCompile(`parley_(at_|rt_)?[0-9A-Za-z]{36}|whsec_[0-9A-Za-z+/]{20,}`)

var webhookSecret = regexp.MustCompile(`whsec_[0-9A-Za-z+/]+`)

const separator = `\036` // cannot occur in what the commands print

// shims replace commands that this test has run already (building) or must not run
// (all tests inside a test).
func shims(t *testing.T, dir string) {
	t.Helper()
	for name, text := range map[string]string{
		"go": `case $* in
'install ./cmd/parley') ;;
'run ./examples/go') exec go-worker ;;
'run ./examples/countdown '*) shift 2; exec countdown-worker "$@" ;;
'run ./examples/a2a-go '*) shift 2; exec go-client "$@" ;;
'run ./examples/client '*) shift 2; exec own-client "$@" ;;
'run ./examples/mcp-go '*) shift 2; exec mcp-client "$@" ;;
'run ./examples/webhook-go '*) shift 2; exec webhook-receiver "$@" ;;
*) echo "no shim for go $*" >&2; exit 1 ;;
esac`,
		"make": `test "$*" = test`,
	} {
		text = "#!/bin/sh\n" + text + "\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}
