package cli

import (
	"fmt"
	"time"

	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/identity"
)

type keyCmd struct {
	Create keyCreateCmd `cmd:"" help:"Create a key and print its secret."`
	List   keyListCmd   `cmd:"" help:"List the keys of an org, without their secrets."`
	Show   keyShowCmd   `cmd:"" help:"Show one key, without its secret."`
	Revoke keyRevokeCmd `cmd:"" help:"Revoke a key; it stops working within seconds."`
	Rotate keyRotateCmd `cmd:"" help:"Replace a key and print the new secret."`
}

// Help is shown by parley key --help.
func (keyCmd) Help() string {
	return "On a server an admin creates keys for agents, services and themselves. " +
		"On a store (--data or --database) the operator creates keys for any principal, with any scope.\n\n" + examples(
		"PARLEY_KEY=$(parley key create --as agent:scout --scope svc:tasks:read --scope svc:tasks:write)",
		"parley key create --as user:ada --scope svc:tasks:read --data ./parley-data --org main",
		"parley key list",
		"parley key revoke key-01k…",
		"NEW=$(parley key rotate key-01k… --overlap 1h)",
	)
}

type keyJSON struct {
	ID         string   `json:"id"`
	Secret     string   `json:"secret,omitempty"`
	Prefix     string   `json:"prefix"`
	Org        string   `json:"org"`
	Principal  string   `json:"principal"`
	Name       string   `json:"name"`
	Scopes     []string `json:"scopes"`
	CreatedAt  *string  `json:"created_at"`
	CreatedBy  string   `json:"created_by"`
	ExpiresAt  *string  `json:"expires_at"`
	RevokedAt  *string  `json:"revoked_at"`
	LastUsedAt *string  `json:"last_used_at"`
}

func newKeyJSON(k identity.Key, secret string) keyJSON {
	scopes := make([]string, len(k.Scopes))
	for i, s := range k.Scopes {
		scopes[i] = string(s)
	}
	return keyJSON{
		ID: k.ID, Secret: secret, Prefix: k.Prefix, Org: k.Principal.Org, Principal: k.Principal.Ref(),
		Name: k.Name, Scopes: scopes, CreatedAt: timestamp(k.CreatedAt), CreatedBy: k.CreatedBy, ExpiresAt: timestamp(k.ExpiresAt),
		RevokedAt: timestamp(k.RevokedAt), LastUsedAt: timestamp(k.LastUsedAt),
	}
}

type keyCreateCmd struct {
	EitherFlags `embed:""`
	As          string         `help:"Principal that the key belongs to: user:ID, agent:ID or service:ID." required:"" placeholder:"REF"`
	Scope       []string       `help:"Scope of the key; may be repeated: ${key_scopes}." required:"" placeholder:"SCOPE"`
	Expires     *time.Duration `help:"How long the key works, e.g. 30d or 12h; for ever if not given." placeholder:"DURATION"`
	Name        string         `help:"What the key is for." placeholder:"NAME"`
}

// Help is shown by --help.
func (keyCreateCmd) Help() string {
	return "Only the secret goes to stdout; the rest goes to stderr. The secret is shown once, and the key works at " +
		"once. " +
		adminHelp + examples(
		"KEY=$(parley key create --as agent:scout --scope svc:tasks:read --scope svc:tasks:write)",
		"parley key create --as service:billing --scope svc:tasks:read --expires 30d --json",
		"parley key create --as user:ada --scope svc:tasks:read --data ./parley-data --org main",
	)
}

func (c *keyCreateCmd) Run(e *env) error {
	r, err := c.remote(e)
	if err != nil {
		return err
	}
	p, err := identity.ParseRef(c.Org, c.As)
	if err != nil {
		return usageError{err}
	}
	expires, err := expiry(c.Expires)
	if err != nil {
		return err
	}
	if r != nil {
		return c.post(e, r, expires)
	}
	return c.inOrg(e, &c.Org, func(op *app.Operator) error {
		p.Org = c.Org
		k, secret, err := op.Identity.CreateKey(e.ctx, identity.KeyRequest{
			Principal: p, Name: c.Name, Scopes: c.Scope, CreatedBy: "parley key create", ExpiresAt: expires,
		})
		if err != nil {
			return c.notFound(err, string(p.Kind), p.ID, p.Org)
		}
		if err := c.warnOfAdmin(e, op, k); err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(newKeyJSON(k, secret))
		}
		fmt.Fprintf(e.stderr, "created key %q for %s %s: %s; %s\n", k.ID, p.Ref(), c.in(p.Org), k.Scopes, until(k.ExpiresAt))
		_, err = fmt.Fprintln(e.stdout, secret)
		return err
	})
}

// warnOfAdmin warns that the key makes its principal an admin. Only the operator can make
// such a key for a user who is not one.
func (c *keyCreateCmd) warnOfAdmin(e *env, op *app.Operator, k identity.Key) error {
	if !k.Scopes.Has(identity.Admin) {
		return nil
	}
	m, err := op.Identity.Member(e.ctx, k.Principal)
	if err != nil {
		return err
	}
	if m.Kind == identity.User && !m.Admin {
		fmt.Fprintf(e.stderr, "%s is not an admin of org %s, but this key can administer the org until it is revoked "+
			"(parley key revoke %s%s)\n", m.Ref(), m.Org, k.ID, c.again(m.Org))
		return nil
	}
	fmt.Fprintf(e.stderr, "with this key %s can administer org %s\n", m.Ref(), m.Org)
	return nil
}

func until(t time.Time) string {
	if t.IsZero() {
		return "never expires"
	}
	return "expires " + when(t) + " UTC"
}

type keyListCmd struct {
	EitherFlags `embed:""`
	wideFlag    `embed:""`
	As          string `help:"Only keys of this principal." placeholder:"REF"`
	State       string `help:"Only keys that are live, revoked or expired." enum:"live,revoked,expired,all" default:"all" placeholder:"STATE"`
}

// Help is shown by --help.
func (keyListCmd) Help() string {
	return adminHelp + examples("parley key list", "parley key list --as agent:scout --state live --json",
		"parley key list --data ./parley-data --org main")
}

func newKeyTable(wide bool) table {
	return table{
		head: []string{"ID", "PREFIX", "PRINCIPAL", "STATE", "LAST USED (UTC)", "NAME", "SCOPES"},
		ids:  "key",
		drop: []string{"PREFIX", "NAME", "LAST USED (UTC)"},
		wide: wide,
	}
}

func (c *keyListCmd) Run(e *env) error {
	r, err := c.remote(e)
	if err != nil {
		return err
	}
	if r != nil {
		return c.get(e, r)
	}
	return c.inOrg(e, &c.Org, func(op *app.Operator) error {
		keys, err := op.Identity.Keys(e.ctx, c.Org)
		if err != nil {
			return err
		}
		if c.As != "" {
			p, err := identity.ParseRef(c.Org, c.As)
			if err != nil {
				return usageError{err}
			}
			if _, err := op.Identity.Member(e.ctx, p); err != nil {
				return c.notFound(err, string(p.Kind), p.ID, p.Org)
			}
		}
		now := app.Now()
		out := []keyJSON{}
		t := newKeyTable(c.Wide)
		for _, k := range keys {
			if c.As != "" && k.Principal.Ref() != c.As || c.State != "all" && string(k.State(now)) != c.State {
				continue
			}
			out = append(out, newKeyJSON(k, ""))
			t.add(k.ID, k.Prefix, k.Principal.Ref(), keyState(k, now), when(k.LastUsedAt), k.Name, k.Scopes.String())
		}
		return e.all(c.JSON, map[string]any{"keys": out}, &t)
	})
}

func keyState(k identity.Key, now time.Time) string {
	switch {
	case !k.RevokedAt.IsZero():
		return "revoked"
	case !k.Live(now):
		return "expired"
	case !k.ExpiresAt.IsZero():
		return "until " + when(k.ExpiresAt)
	}
	return "live"
}

type keyRevokeCmd struct {
	EitherFlags `embed:""`
	ID          string `arg:"" help:"Id of the key, key-…, or a unique prefix of it."`
}

// Help is shown by --help.
func (keyRevokeCmd) Help() string {
	return adminHelp + examples("parley key revoke key-01k…", "parley key revoke key-01k… --data ./parley-data --org main")
}

func (c *keyRevokeCmd) Run(e *env) error {
	r, err := c.remote(e)
	if err != nil {
		return err
	}
	if r != nil {
		return c.revoke(e, r)
	}
	return c.inOrg(e, &c.Org, func(op *app.Operator) error {
		if err := c.complete(e, op); err != nil {
			return err
		}
		if err := op.Identity.RevokeKey(e.ctx, c.Org, c.ID); err != nil {
			return c.notFound(err, "key", c.ID, c.Org)
		}
		return e.created(c.JSON, map[string]string{"id": c.ID, "org": c.Org, "status": "revoked"},
			"revoked key %q %s", c.ID, c.in(c.Org))
	})
}

// complete replaces a prefix of the id by the id.
func (c *keyRevokeCmd) complete(e *env, op *app.Operator) error {
	if !abbreviated(c.ID, idKinds["key"].prefix) {
		return nil
	}
	keys, err := op.Identity.Keys(e.ctx, c.Org)
	if err != nil {
		return err
	}
	c.ID, err = onlyMatch("key", c.ID, func(yield func(string, error) bool) {
		for _, k := range keys {
			if !yield(k.ID, nil) {
				return
			}
		}
	})
	return err
}
