package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/store"
)

type secretsCmd struct {
	Status   secretsStatusCmd   `cmd:"" help:"Show the keys, and what is encrypted under them."`
	AddKey   secretsAddKeyCmd   `cmd:"" help:"Make the key file, or add a key for the next rotation to it."`
	Rotate   secretsRotateCmd   `cmd:"" help:"Encrypt all secrets under a new key, while servers use the store."`
	DropLost secretsDropLostCmd `cmd:"" help:"Remove the secrets whose key is lost."`
}

// Help is shown by parley secrets --help.
func (secretsCmd) Help() string {
	return operatorHelp + "Secrets that the server must be able to read are encrypted in the store: signing keys of webhooks, " +
		"credentials of relays and of push configurations, and private keys of the server. The keys are in a file apart from the " +
		"database, --secret-key-file.\n\n" + examples(
		"parley secrets status",
		"parley secrets add-key --secret-key-file /etc/parley/secret.key",
		"parley secrets rotate --data /var/lib/parley",
	)
}

type secretsStatusCmd struct {
	StoreFlags `embed:""`
}

// Help is shown by --help.
func (secretsStatusCmd) Help() string {
	return operatorHelp + "The exit code is 0 also if secrets are not encrypted.\n\n" + examples(
		"parley secrets status",
		"parley secrets status --database postgres://parley@db/parley --secret-key-file secret.key --json",
	)
}

type secretsStatusJSON struct {
	File        string            `json:"file"`
	Keys        []secretKeyJSON   `json:"keys"`
	Secrets     []secretsUseJSON  `json:"secrets"`
	Unencrypted int64             `json:"unencrypted"`
	Lost        int64             `json:"lost"` // their key is not in the file
	Nodes       []secretsNodeJSON `json:"nodes,omitempty"`
}

type secretKeyJSON struct {
	ID        string  `json:"id"`
	CreatedAt *string `json:"created_at"` // null: not in the file
	State     string  `json:"state"`      // current, next, old or missing
	Secrets   int64   `json:"secrets"`
}

type secretsUseJSON struct {
	What        string `json:"what"`
	Encrypted   int64  `json:"encrypted"`
	Unencrypted int64  `json:"unencrypted"`
}

type secretsNodeJSON struct {
	Host string   `json:"host"`
	Keys []string `json:"keys"`
}

func newSecretsStatusJSON(s *app.SecretsStatus) secretsStatusJSON {
	out := secretsStatusJSON{
		File: s.File, Keys: []secretKeyJSON{}, Secrets: []secretsUseJSON{}, Unencrypted: s.Use.Count(""),
	}
	pending, waits := s.Keys.Pending()
	for i, k := range s.Keys {
		state := "old"
		switch {
		case i == 0:
			state = "current"
		case waits && k.ID == pending.ID:
			state = "next"
		}
		out.Keys = append(out.Keys, secretKeyJSON{k.ID, timestamp(k.CreatedAt), state, s.Use.Count(k.ID)})
	}
	for _, id := range s.Missing() {
		out.Keys = append(out.Keys, secretKeyJSON{ID: id, State: "missing", Secrets: s.Use.Count(id)})
		out.Lost += s.Use.Count(id)
	}
	for _, table := range slices.Sorted(maps.Keys(s.Use)) {
		u := secretsUseJSON{What: s.Use.What(table), Unencrypted: s.Use[table][""]}
		for id, n := range s.Use[table] {
			if id != "" {
				u.Encrypted += n
			}
		}
		out.Secrets = append(out.Secrets, u)
	}
	for _, n := range s.Nodes {
		out.Nodes = append(out.Nodes, secretsNodeJSON{n.Host, n.Keys})
	}
	return out
}

func (c *secretsStatusCmd) Run(e *env) error {
	s, err := app.Secrets(e.ctx, c.Store)
	if err != nil {
		return err
	}
	out := newSecretsStatusJSON(&s)
	if c.JSON {
		return e.printJSON(out)
	}
	return out.print(e)
}

func (s *secretsStatusJSON) print(e *env) error {
	var b strings.Builder
	if s.File == "" {
		b.WriteString("no key file is given\n")
	} else {
		fmt.Fprintf(&b, "key file: %s\n", clean(s.File))
	}
	for _, k := range s.Keys {
		at := "not in the file"
		if k.CreatedAt != nil {
			at = "made " + *k.CreatedAt
		}
		fmt.Fprintf(&b, "key %s: %s, %s, %d secrets\n", k.ID, k.State, at, k.Secrets)
	}
	for _, u := range s.Secrets {
		fmt.Fprintf(&b, "%s: %d encrypted, %d not\n", u.What, u.Encrypted, u.Unencrypted)
	}
	for _, n := range s.Nodes {
		has := "no keys"
		if len(n.Keys) > 0 {
			has = "keys " + strings.Join(n.Keys, ", ")
		}
		fmt.Fprintf(&b, "server %s: %s\n", cleanLine(n.Host), has)
	}
	switch {
	case s.Lost > 0:
		fmt.Fprintf(&b, "%d secrets cannot be read: give the key file of this store with --secret-key-file, or, if it is lost, "+
			"run \"parley secrets drop-lost\"\n", s.Lost)
	case s.Unencrypted > 0 && len(s.Keys) == 0:
		fmt.Fprintf(&b, "%d secrets are not encrypted: make a key file with \"parley secrets add-key\", and give it to every "+
			"server with --secret-key-file\n", s.Unencrypted)
	case s.Unencrypted > 0:
		fmt.Fprintf(&b, "%d secrets are not encrypted: restart the servers with --secret-key-file, or run "+
			"\"parley secrets rotate\"\n", s.Unencrypted)
	}
	_, err := fmt.Fprint(e.stdout, b.String())
	return err
}

type secretsAddKeyCmd struct {
	StoreFlags `embed:""`
}

// Help is shown by --help.
func (secretsAddKeyCmd) Help() string {
	return "For the operator: works on the key file, and needs no store.\n\nMakes the file, if there is none. Otherwise it adds " +
		"a key that only decrypts until \"parley secrets rotate\" makes it current: so the file can be copied to all servers " +
		"before.\n\n" + examples(
		"parley secrets add-key --secret-key-file /etc/parley/secret.key",
		"parley secrets add-key --data /var/lib/parley",
	)
}

type secretsAddKeyJSON struct {
	File  string   `json:"file"`
	Made  bool     `json:"made"` // there was no file
	Keys  []string `json:"keys"` // the current one first
	Added string   `json:"added"`
}

func (c *secretsAddKeyCmd) Run(e *env) error {
	keys, made, err := app.AddKey(c.Store)
	if err != nil {
		return err
	}
	ids := keys.IDs()
	out := secretsAddKeyJSON{File: c.KeyFile(), Made: made, Keys: ids, Added: ids[len(ids)-1]}
	if made {
		return e.created(c.JSON, out, "made %s with the key %s; keep a copy of it apart from back-ups of the database",
			clean(out.File), out.Added)
	}
	return e.created(c.JSON, out, "added the key %s to %s; copy the file to all servers, then run \"parley secrets rotate\"",
		out.Added, clean(out.File))
}

type secretsRotateCmd struct {
	StoreFlags `embed:""`
	Keep       bool `help:"Keep keys in the file that nothing uses any more. Older back-ups need them."`
}

// Help is shown by --help.
func (secretsRotateCmd) Help() string {
	return operatorHelp + "Adds a key, unless \"parley secrets add-key\" has done it, makes it current, and encrypts all secrets " +
		"under it. Servers read the file by themselves; those on other machines need a copy of it before, and one after. If it is " +
		"interrupted, nothing is lost: run it again. Keys that nothing uses any more are removed from the file; back-ups from before " +
		"need them, so keep a copy of the old file with these, or use --keep.\n\n" + examples(
		"parley secrets rotate",
		"parley secrets rotate --data /var/lib/parley --keep",
		"parley secrets rotate --database postgres://parley@db/parley --secret-key-file /etc/parley/secret.key",
	)
}

type secretsRotateJSON struct {
	File    string   `json:"file"`
	Key     string   `json:"key"`
	Secrets int64    `json:"secrets"`
	Dropped []string `json:"dropped"`
	Kept    []string `json:"kept"`
	Behind  []string `json:"behind"` // hosts of servers that still use an older key
	Seconds float64  `json:"seconds"`
}

func (c *secretsRotateCmd) Run(e *env) error {
	began := time.Now()
	p := e.progress()
	p.line("waiting for servers to read the key file")
	r, err := app.RotateSecrets(e.ctx, c.Store, c.Keep, func(done int64) { p.line(fmt.Sprintf("%d secrets", done)) })
	p.clear()
	if err != nil {
		return err
	}
	out := secretsRotateJSON{
		File: c.KeyFile(), Key: r.Key, Secrets: r.Values, Dropped: noNil(r.Dropped), Kept: noNil(r.Kept),
		Behind: []string{}, Seconds: time.Since(began).Seconds(),
	}
	for _, n := range r.Behind {
		out.Behind = append(out.Behind, n.Host)
	}
	if c.JSON {
		return e.printJSON(out)
	}
	return out.print(e, r.Behind)
}

// noNil returns a list that is not null in JSON.
func noNil(list []string) []string { return append([]string{}, list...) }

func (r *secretsRotateJSON) print(e *env, behind []store.Node) error {
	var b strings.Builder
	fmt.Fprintf(&b, "encrypted %d secrets under the key %s of %s, in %.1f s\n", r.Secrets, r.Key, clean(r.File), r.Seconds)
	if len(r.Dropped) > 0 {
		fmt.Fprintf(&b, "removed from the file: %s; back-ups from before this rotation need it\n", strings.Join(r.Dropped, ", "))
	}
	if len(r.Kept) > 0 {
		fmt.Fprintf(&b, "kept in the file: %s\n", strings.Join(r.Kept, ", "))
	}
	for _, n := range behind {
		fmt.Fprintf(&b, "server %s still encrypts with an older key: copy the file to it; the next rotation removes that key\n",
			cleanLine(n.String()))
	}
	_, err := fmt.Fprint(e.stdout, b.String())
	return err
}

type secretsDropLostCmd struct {
	StoreFlags `embed:""`
	Yes        bool `help:"Do not ask."`
}

// Help is shown by --help.
func (secretsDropLostCmd) Help() string {
	return operatorHelp + "For a store whose key file is lost: it removes what no key in the file can decrypt. Webhooks get a new " +
		"secret and are paused until an admin has rotated it and given it to the receiver. Push configurations are given up. " +
		"Credentials of relays must be set again. The server makes its own keys again when it starts. It cannot be undone.\n\n" +
		examples("parley secrets drop-lost --data /var/lib/parley")
}

type secretsDropLostJSON struct {
	Dropped map[string]int64 `json:"dropped"` // rows by table
}

func (c *secretsDropLostCmd) Run(e *env) error {
	if !c.Yes {
		what := "This removes all secrets of " + app.StoreName(c.Store) + " that cannot be decrypted, for good."
		if err := e.confirm("drop-lost", what); err != nil {
			return err
		}
	}
	dropped, err := app.DropLost(e.ctx, c.Store)
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(secretsDropLostJSON{dropped})
	}
	if len(dropped) == 0 {
		_, err := fmt.Fprintln(e.stdout, "every secret can be decrypted: nothing was removed")
		return err
	}
	for _, table := range slices.Sorted(maps.Keys(dropped)) {
		if _, err := fmt.Fprintf(e.stdout, "removed %s: %d\n", store.SealedUse{}.What(table), dropped[table]); err != nil {
			return err
		}
	}
	return nil
}
