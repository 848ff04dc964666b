package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/parley-dev/parley/sdk/client"
)

// keyStateOf says in one cell whether the key works.
func keyStateOf(k *client.Key) string {
	switch {
	case k.State == "live" && k.PrincipalDisabled:
		return "live, but disabled"
	case k.State == "live" && !k.ExpiresAt.IsZero():
		return "until " + when(k.ExpiresAt)
	}
	return k.State
}

// newKey makes a call that makes a key, and prints the secret alone.
func (e *env) newKey(r *remote, org string, asJSON bool, do func(*client.Client, client.Option) (*client.KeyWithSecret, error)) error {
	k, done, err := askAt(e, r, asJSON, do)
	if done {
		return err
	}
	fmt.Fprintf(e.stderr, "created %s for %s in org %s: %s; %s\n", cleanLine(k.ID), cleanLine(k.Principal), org,
		cleanLine(strings.Join(k.Scopes, " ")), until(k.ExpiresAt))
	_, err = fmt.Fprintln(e.stdout, cleanLine(k.Secret))
	return err
}

func (c *keyCreateCmd) post(e *env, r *remote, expires time.Time) error {
	creation := client.KeyCreation{Principal: c.As, Scopes: c.Scope, Name: c.Name}
	if !expires.IsZero() {
		creation.ExpiresAt = &expires
	}
	return e.newKey(r, c.Org, c.JSON, func(api *client.Client, raw client.Option) (*client.KeyWithSecret, error) {
		return api.Keys.Create(e.ctx, creation, raw)
	})
}

// get lists all keys, page by page.
func (c *keyListCmd) get(e *env, r *remote, err error) error {
	if err != nil {
		return err
	}
	page := func(opts ...client.Option) (*client.Page[client.Key], error) {
		return r.Keys.List(e.ctx, client.KeyListParams{State: c.State, Principal: c.As}, opts...)
	}
	t := table{head: []string{"ID", "PREFIX", "PRINCIPAL", "STATE", "LAST USED (UTC)", "NAME", "SCOPES"}}
	list, err := all("keys", page, func(k *client.Key) {
		t.add(k.ID, k.Prefix, k.Principal, keyStateOf(k), when(k.LastUsedAt), k.Name, strings.Join(k.Scopes, " "))
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(map[string]any{"keys": list})
	}
	return e.list(&t, e.palette(), "key", "keys", len(list), 1, false)
}

func (c *keyRevokeCmd) revoke(e *env, r *remote, err error) error {
	if err != nil {
		return err
	}
	k, done, err := askAt(e, r, c.JSON, func(api *client.Client, raw client.Option) (*client.Key, error) {
		return api.Keys.Revoke(e.ctx, c.ID, raw)
	})
	if done {
		return err
	}
	_, err = fmt.Fprintf(e.stdout, "revoked %s\n", cleanLine(k.ID))
	return err
}

type keyShowCmd struct {
	serverFlags `embed:""`
	ID          string `arg:"" help:"Id of the key, key-…"`
}

// Help is shown by --help.
func (keyShowCmd) Help() string {
	return "Needs the scope svc:admin:admin.\n\n" + examples("parley key show key-01k…", "parley key show key-01k… --json | jq -r .last_used_at")
}

func (c *keyShowCmd) Run(e *env) error {
	k, done, err := ask(e, &c.serverFlags, func(api *client.Client, raw client.Option) (*client.Key, error) {
		return api.Keys.Get(e.ctx, c.ID, raw)
	})
	if done {
		return err
	}
	rec := record{p: e.palette()}
	rec.heading(k.ID)
	rec.field("name", cleanLine(k.Name))
	rec.field("principal", cleanLine(k.Principal))
	rec.field("scopes", cleanLine(strings.Join(k.Scopes, " ")))
	rec.field("prefix", cleanLine(k.Prefix))
	rec.field("state", cleanLine(keyStateOf(k)))
	rec.field("created", when(k.CreatedAt)+" UTC by "+cleanLine(k.CreatedBy))
	rec.field("last used", when(k.LastUsedAt))
	rec.field("expires", when(k.ExpiresAt))
	if !k.RevokedAt.IsZero() {
		rec.field("revoked", when(k.RevokedAt)+" UTC")
	}
	rec.field("replaced by", cleanLine(k.ReplacedBy))
	_, err = e.stdout.Write([]byte(rec.b.String()))
	return err
}

type keyRotateCmd struct {
	serverFlags `embed:""`
	ID          string        `arg:"" help:"Id of the key, key-…"`
	Overlap     time.Duration `help:"How long the old key works beside the new one, at most 168h; not at all if not given." placeholder:"DURATION"`
}

// Help is shown by --help.
func (keyRotateCmd) Help() string {
	return "The new key has the same principal, scopes, name and expiry. Its secret alone goes to stdout, and the rest to stderr. Needs the scope svc:admin:admin.\n\n" +
		examples("NEW=$(parley key rotate key-01k… --overlap 1h)", "parley key rotate key-01k… --json")
}

func (c *keyRotateCmd) Run(e *env) error {
	r, err := c.client(e)
	if err != nil {
		return err
	}
	return e.newKey(r, c.Org, c.JSON, func(api *client.Client, raw client.Option) (*client.KeyWithSecret, error) {
		return api.Keys.Rotate(e.ctx, c.ID, client.KeyRotation{OverlapSeconds: int(c.Overlap / time.Second)}, raw)
	})
}
