package cli

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/parley-dev/parley/sdk/client"
)

// keyStateOf returns in one cell whether the key works.
func keyStateOf(k *client.Key) string {
	switch {
	case k.State == "live" && k.PrincipalDisabled:
		return "live, but disabled"
	case k.State == "live" && !k.ExpiresAt.IsZero():
		return "until " + when(k.ExpiresAt)
	}
	return k.State
}

// newKey makes a call that makes a key, and prints the secret to stdout.
func (r *remote) newKey(
	e *env, asJSON bool, s subject, do func(*client.Client, client.Option) (*client.KeyWithSecret, error),
) error {
	k, done, err := askAt(e, r, asJSON, s, do)
	if done {
		return err
	}
	fmt.Fprintf(e.stderr, "created key %q for %s %s: %s; %s\n", cleanLine(k.ID), cleanLine(k.Principal), r.in(e),
		cleanLine(strings.Join(k.Scopes, " ")), until(k.ExpiresAt))
	_, err = fmt.Fprintln(e.stdout, cleanLine(k.Secret))
	return err
}

func (c *keyCreateCmd) post(e *env, r *remote, expires time.Time) error {
	creation := client.KeyCreation{Principal: c.As, Scopes: c.Scope, Name: c.Name}
	if !expires.IsZero() {
		creation.ExpiresAt = &expires
	}
	err := r.newKey(e, c.JSON, aboutOrg, func(api *client.Client, raw client.Option) (*client.KeyWithSecret, error) {
		return api.Keys.Create(e.ctx, creation, raw)
	})
	var refused *refusal
	if errors.As(err, &refused) && refused.cause.Code == "identity.key_of_another_user" {
		var unknown *client.Error
		if _, err := r.Members.Get(e.ctx, c.As); errors.As(err, &unknown) && unknown.Status == http.StatusNotFound {
			return r.explain(e, aboutMember(c.As), err)
		}
		refused.says = refused.cause.Detail + "; the operator can do it on the store, with --data or --database"
	}
	return r.missingPrincipal(e, err, "principal", c.As)
}

// get lists all keys, page by page.
func (c *keyListCmd) get(e *env, r *remote) error {
	page := func(opts ...client.Option) (*client.Page[client.Key], error) {
		return r.Keys.List(e.ctx, client.KeyListParams{State: c.State, Principal: c.As}, opts...)
	}
	t := newKeyTable(c.Wide)
	list, err := everything("keys", page, func(k *client.Key) {
		t.add(k.ID, k.Prefix, k.Principal, keyStateOf(k), when(k.LastUsedAt), k.Name, strings.Join(k.Scopes, " "))
	})
	if err != nil {
		return r.explain(e, aboutOrg, err)
	}
	if c.As != "" && len(list) == 0 {
		if _, err := r.Members.Get(e.ctx, c.As); err != nil {
			return r.explain(e, aboutMember(c.As), err)
		}
	}
	if c.JSON {
		return e.printJSON(map[string]any{"keys": list})
	}
	return e.list(&t, "key", "keys", len(list), 1, false)
}

func (c *keyRevokeCmd) revoke(e *env, r *remote) error {
	k, done, err := askAt(e, r, c.JSON, about("key", &c.ID),
		func(api *client.Client, raw client.Option) (*client.Key, error) {
			return api.Keys.Revoke(e.ctx, c.ID, raw)
		})
	if done {
		return err
	}
	return e.say("revoked key %q %s", k.ID, r.in(e))
}

type keyShowCmd struct {
	serverFlags `embed:""`
	ID          string `arg:"" help:"Id of the key, key-…, or a unique prefix of it."`
}

// Help is shown by --help.
func (keyShowCmd) Help() string {
	return "Works on a server. Needs the scope svc:admin:admin.\n\n" +
		examples("parley key show key-01k…", "parley key show key-01k… --json | jq -r .last_used_at")
}

func (c *keyShowCmd) Run(e *env) error {
	k, done, err := ask(e, &c.serverFlags, about("key", &c.ID),
		func(api *client.Client, raw client.Option) (*client.Key, error) {
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
	ID          string        `arg:"" help:"Id of the key, key-…, or a unique prefix of it."`
	Overlap     time.Duration `help:"How long the old key keeps working, at most 7d; not at all if not given." placeholder:"DURATION"`
}

// Help is shown by --help.
func (keyRotateCmd) Help() string {
	return "The new key has the same principal, scopes, name and expiry. Only its secret goes to stdout; the rest goes " +
		"to stderr. Works on a server; on a store, create a new key and revoke the old one. Needs the scope " +
		"svc:admin:admin.\n\n" +
		examples("NEW=$(parley key rotate key-01k… --overlap 1h)", "parley key rotate key-01k… --json")
}

func (c *keyRotateCmd) Run(e *env) error {
	r, err := c.client(e)
	if err != nil {
		return err
	}
	rotation := client.KeyRotation{OverlapSeconds: seconds(c.Overlap)}
	return r.newKey(e, c.JSON, about("key", &c.ID),
		func(api *client.Client, raw client.Option) (*client.KeyWithSecret, error) {
			return api.Keys.Rotate(e.ctx, c.ID, rotation, raw)
		})
}
