package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/backup"
	"github.com/parley-dev/parley/internal/config"
)

type backupCmd struct {
	StoreFlags `embed:""`
	Dest       string `arg:"" help:"New file, or a folder, where the file gets a name with the time; or - for stdout."`
	IncludeKey bool   `help:"Put the key file into the back-up, which then reveals all secrets to its readers."`
	Keep       int    `help:"Keep this many back-ups in the folder, and remove older ones that this command made; 0 keeps all." placeholder:"N"`
}

// Help is shown by --help.
func (backupCmd) Help() string {
	return operatorHelp + "The back-up has all data as of the moment in which the command began, with encrypted " +
		"secrets and hashes of keys and passwords; keep it safe. The file with the keys of the secrets is not in it: keep a " +
		"copy of that file elsewhere, or use --include-key. Servers keep working meanwhile. It can be restored on SQLite " +
		"and on PostgreSQL.\n\n" + examples(
		"parley backup before-upgrade.backup",
		"parley backup /var/backups/parley/ --keep 7 --data /var/lib/parley",
		"parley backup - --database postgres://parley@db/parley | ssh elsewhere 'cat > parley.backup'",
	)
}

type backupJSON struct {
	Org       string           `json:"org,omitempty"`
	Path      string           `json:"path,omitempty"`
	Size      int64            `json:"size_bytes,omitempty"`
	Version   string           `json:"version"`
	Schema    int              `json:"schema"`
	Engine    string           `json:"engine"`
	CreatedAt *string          `json:"created_at"`
	Rows      int64            `json:"rows"`
	Tables    map[string]int64 `json:"tables"`
	SHA256    string           `json:"sha256"`
	Removed   []string         `json:"removed,omitempty"`
	Store     string           `json:"store,omitempty"`
	Secrets   secretsInJSON    `json:"secrets"`
	Seconds   float64          `json:"seconds"`
}

// secretsInJSON says what a back-up or an export reveals, and what it needs.
type secretsInJSON struct {
	Keys        []string `json:"keys"` // ids of the keys that its secrets are encrypted under
	IncludesKey bool     `json:"includes_key"`
	Unencrypted int64    `json:"unencrypted"`
	MissingKeys []string `json:"missing_keys,omitempty"` // of keys, those that the key file lacks
}

func newSecretsInJSON(h *backup.Header) secretsInJSON {
	return secretsInJSON{Keys: noNil(h.Keys), IncludesKey: h.KeyFile != "", Unencrypted: h.OpenSecrets}
}

// says describes the secrets for people.
func (s secretsInJSON) says() string {
	var out string
	switch {
	case s.IncludesKey:
		out = "it contains the key of its secrets: whoever reads it can read all secrets\n"
	case len(s.Keys) > 0:
		out = fmt.Sprintf("it does not contain the key of its secrets (%s): keep a copy of the key file elsewhere\n",
			strings.Join(s.Keys, ", "))
	}
	if s.Unencrypted > 0 {
		out += fmt.Sprintf("it contains %d secrets that are not encrypted: keep it safe\n", s.Unencrypted)
	}
	return out
}

func (c *backupCmd) Run(e *env) error {
	if c.Keep < 0 {
		return usage("--keep %d: give the number of back-ups to keep, or 0 for all", c.Keep)
	}
	if err := e.checkDest(c.Dest, c.JSON); err != nil {
		return err
	}
	began := time.Now()
	p := e.progress()
	b, err := app.Backup(e.ctx, c.Store, app.BackupTo{Dest: c.Dest, Stdout: e.stdout, Keep: c.Keep, WithKey: c.IncludeKey}, p.show)
	p.clear()
	if err != nil {
		return err
	}
	return e.backedUp(&b, c.JSON, c.Dest, fmt.Sprintf("backed up %d rows of the %s store", b.Rows, b.Engine), began)
}

// checkDest returns an error if a back-up cannot go to stdout.
func (e *env) checkDest(dest string, asJSON bool) error {
	if dest != "-" {
		return nil
	}
	switch f, ok := e.stdout.(*os.File); {
	case asJSON:
		return usage("--json and the destination - exclude each other: stdout has the back-up; name a file")
	case ok && isTerminal(f):
		return usage("a back-up is not text: redirect stdout to a file or a pipe, or name a file")
	}
	return nil
}

// backedUp prints what was written. did is the beginning of the sentence for people.
func (e *env) backedUp(b *app.BackedUp, asJSON bool, dest, did string, began time.Time) error {
	out := backupJSON{
		Org: b.Org, Path: b.Path, Size: b.Size, Version: b.Version, Schema: b.Schema, Engine: b.Engine,
		CreatedAt: timestamp(b.CreatedAt), Rows: b.Rows, Tables: b.Tables, SHA256: b.SHA256, Removed: b.Removed,
		Seconds: time.Since(began).Seconds(), Secrets: newSecretsInJSON(&b.Header),
	}
	if asJSON {
		return e.printJSON(out)
	}
	to := e.stdout
	if dest == "-" {
		to = e.stderr
	}
	where := ""
	if b.Path != "" {
		where = fmt.Sprintf(" to %s, %d KiB", clean(b.Path), (b.Size+1023)/1024)
	}
	_, err := fmt.Fprintf(to, "%s (schema %d)%s, in %.1f s\n%s", did, b.Schema, where, out.Seconds, out.Secrets.says())
	for _, old := range b.Removed {
		if err == nil {
			_, err = fmt.Fprintf(to, "removed %s\n", clean(old))
		}
	}
	return err
}

type restoreCmd struct {
	StoreFlags `embed:""`
	Src        string `arg:"" help:"File that parley backup wrote; or - for stdin."`
	DryRun     bool   `help:"Read the back-up to its end, say what it has, and change nothing."`
}

// Help is shown by --help.
func (restoreCmd) Help() string {
	return operatorHelp + "The store must be empty, and gets everything or nothing. It may have another engine than " +
		"the one that was backed up: so a store moves from SQLite to PostgreSQL and back. No server may use it before the " +
		"command ends. A back-up of an older version is brought up to date.\n\n" + examples(
		"parley restore before-upgrade.backup --data restored",
		"parley restore parley.backup --database postgres://parley@db/parley",
		"parley restore parley.backup --dry-run",
	)
}

func (c *restoreCmd) Run(e *env) error {
	n := namingOf(e.kong)
	if !c.DryRun && max(n.data, n.database) == config.FromDefault {
		return usage("name the empty store to restore into with --data or --database")
	}
	from, done, err := e.source(c.Src)
	if err != nil {
		return err
	}
	defer done()
	began := time.Now()
	p := e.progress()
	r, err := app.Restore(e.ctx, c.Store, from, c.DryRun, p.show)
	p.clear()
	if err != nil {
		return err
	}
	out := backupJSON{
		Version: r.Version, Schema: r.Schema, Engine: r.Engine, CreatedAt: timestamp(r.CreatedAt), Rows: r.Rows,
		Tables: r.Tables, SHA256: r.SHA256, Seconds: time.Since(began).Seconds(), Secrets: newSecretsInJSON(&r.Header),
	}
	out.Secrets.MissingKeys = r.Missing
	if !c.DryRun {
		out.Store = r.Store
	}
	if c.JSON {
		return e.printJSON(out)
	}
	what := fmt.Sprintf("a back-up of %s, made by parley %s on a %s store (schema %d): %d rows",
		r.CreatedAt.Format(time.RFC3339), cleanLine(r.Version), cleanLine(r.Engine), r.Schema, r.Rows)
	if c.DryRun {
		_, err = fmt.Fprintf(e.stdout, "complete and unchanged: %s\n%s", what, out.Secrets.says())
		return err
	}
	_, err = fmt.Fprintf(e.stdout, "restored %s, into %s, in %.1f s\n%s", what, clean(r.Store), out.Seconds, needsKey(&r))
	return err
}

// needsKey says what to do about secrets that cannot be decrypted.
func needsKey(r *app.Restored) string {
	switch {
	case len(r.Missing) > 0:
		do := "give the key file of the store that was backed up to every server with --secret-key-file"
		if r.KeyFile != "" {
			do = "copy the key file of the store that was backed up to " + clean(r.KeyFile)
		}
		return fmt.Sprintf("its secrets (of webhooks, relays, pushes and the server) need the key %s: %s; if it is lost, run "+
			"\"parley secrets drop-lost\"\n", strings.Join(r.Missing, ", "), do)
	case r.Header.KeyFile != "":
		return "the key of its secrets is in " + clean(r.KeyFile) + "\n"
	}
	return ""
}

// source opens a file, or stdin if its name is -.
func (e *env) source(name string) (from io.Reader, done func(), err error) {
	if name == "-" {
		return e.stdin, func() {}, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	return f, func() { _ = f.Close() }, nil
}

// progress shows what a long command does, in one line of a terminal.
type progress struct {
	to    io.Writer // nil if there is no terminal
	last  time.Time
	shown bool
}

func (e *env) progress() *progress {
	if f, ok := e.stderr.(*os.File); ok && isTerminal(f) {
		return &progress{to: f}
	}
	return &progress{}
}

func isTerminal(f *os.File) bool {
	_, ok := terminalWidth(f)
	return ok
}

func (p *progress) show(table string, rows int64) {
	if time.Since(p.last) >= 100*time.Millisecond {
		p.line(fmt.Sprintf("%s: %d rows", table, rows))
	}
}

func (p *progress) line(text string) {
	if p.to == nil {
		return
	}
	p.last, p.shown = time.Now(), true
	_, _ = fmt.Fprint(p.to, "\r\x1b[K", cleanLine(text))
}

func (p *progress) clear() {
	if p.shown {
		_, _ = fmt.Fprint(p.to, "\r\x1b[K")
	}
}
