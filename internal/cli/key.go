package cli

import (
	"fmt"
	"time"

	"github.com/alecthomas/kong"

	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/identity"
)

type keyCmd struct {
	Create keyCreateCmd `cmd:"" help:"Create a key and print its secret."`
	List   keyListCmd   `cmd:"" help:"List the keys of an org, without their secrets."`
	Show   keyShowCmd   `cmd:"" help:"Show one key, without its secret, on a running server."`
	Revoke keyRevokeCmd `cmd:"" help:"Revoke a key; it stops working within seconds."`
	Rotate keyRotateCmd `cmd:"" help:"Replace a key and print the new secret, on a running server."`
}

// Help is shown by parley key --help.
func (keyCmd) Help() string {
	return examples(
		"PARLEY_KEY=$(parley key create --org main --as user:ada --scope svc:tasks:read --scope svc:tasks:write)",
		"parley key list --org main",
		"parley key revoke key-01k… --org main",
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
		ID: k.ID, Secret: secret, Prefix: k.Prefix, Org: k.Principal.Org, Principal: k.Principal.Ref(), Name: k.Name, Scopes: scopes,
		CreatedAt: timestamp(k.CreatedAt), CreatedBy: k.CreatedBy, ExpiresAt: timestamp(k.ExpiresAt),
		RevokedAt: timestamp(k.RevokedAt), LastUsedAt: timestamp(k.LastUsedAt),
	}
}

type keyCreateCmd struct {
	EitherFlags `embed:""`
	orgFlag     `embed:""`
	As          string        `help:"Principal that the key speaks for: user:ID, agent:ID or service:ID." required:"" placeholder:"REF"`
	Scope       []string      `help:"Right that the key carries; may be repeated. svc:tasks:read, svc:tasks:write, svc:admin:admin, svc:a2a:write, svc:a2a:serve, agent:ID or agent:*." required:"" placeholder:"SCOPE"`
	Expires     time.Duration `help:"How long the key works, e.g. 720h; for ever if not given." placeholder:"DURATION"`
	Name        string        `help:"What the key is for." placeholder:"NAME"`
}

// Help is shown by --help.
func (keyCreateCmd) Help() string {
	return "The secret alone goes to stdout, and the rest to stderr. It is shown this once. It works at once, also on a running server.\n\n" + examples(
		"KEY=$(parley key create --org main --as agent:scout --scope svc:tasks:read --scope svc:tasks:write)",
		"parley key create --org main --as service:billing --scope svc:tasks:read --expires 720h --json",
	)
}

func (c *keyCreateCmd) Run(e *env, k *kong.Context) error {
	cl, err := c.remote(e, k, c.Org)
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
	if cl != nil {
		return c.post(e, cl, expires)
	}
	return c.with(e, func(op *app.Operator) error {
		k, secret, err := op.Identity.CreateKey(e.ctx, identity.KeyRequest{
			Principal: p, Name: c.Name, Scopes: c.Scope, CreatedBy: "parley key create", ExpiresAt: expires,
		})
		if err != nil {
			return notFound(err, "there is no %s in org %q; create it first with parley %s create", p.Ref(), p.Org, p.Kind)
		}
		if err := c.warnOfAdmin(e, op, k); err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(newKeyJSON(k, secret))
		}
		fmt.Fprintf(e.stderr, "created %s for %s in org %s: %s; %s\n", k.ID, p.Ref(), p.Org, k.Scopes, until(k.ExpiresAt))
		_, err = fmt.Fprintln(e.stdout, secret)
		return err
	})
}

// warnOfAdmin says on stderr that the key makes its principal an admin. Only the
// operator can make such a key for a user who is not one.
func (c *keyCreateCmd) warnOfAdmin(e *env, op *app.Operator, k identity.Key) error {
	if !k.Scopes.Has(identity.Admin) {
		return nil
	}
	m, err := op.Identity.Member(e.ctx, k.Principal)
	if err != nil {
		return err
	}
	if m.Kind == identity.User && !m.Admin {
		fmt.Fprintf(e.stderr, "%s is not an admin of org %s; with this key it can administer the org all the same, until the key is revoked (parley key revoke %s --org %s)\n",
			m.Ref(), m.Org, k.ID, m.Org)
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
	orgFlag     `embed:""`
	As          string `help:"Only keys of this principal." placeholder:"REF"`
	State       string `help:"Only keys that are live, revoked or expired." enum:"live,revoked,expired,all" default:"all" placeholder:"STATE"`
}

// Help is shown by --help.
func (keyListCmd) Help() string {
	return examples("parley key list --org main", "parley key list --org main --json")
}

func (c *keyListCmd) Run(e *env, k *kong.Context) error {
	if cl, err := c.remote(e, k, c.Org); err != nil || cl != nil {
		return c.get(e, cl, err)
	}
	return c.with(e, func(op *app.Operator) error {
		if err := knownOrg(e, op, c.Org); err != nil {
			return err
		}
		keys, err := op.Identity.Keys(e.ctx, c.Org)
		if err != nil {
			return err
		}
		now := app.Now()
		out := []keyJSON{}
		t := table{head: []string{"ID", "PREFIX", "PRINCIPAL", "STATE", "LAST USED (UTC)", "NAME", "SCOPES"}}
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
	orgFlag     `embed:""`
	ID          string `arg:"" help:"Id of the key, key-…"`
}

// Help is shown by --help.
func (keyRevokeCmd) Help() string { return examples("parley key revoke key-01k… --org main") }

func (c *keyRevokeCmd) Run(e *env, k *kong.Context) error {
	if cl, err := c.remote(e, k, c.Org); err != nil || cl != nil {
		return c.revoke(e, cl, err)
	}
	return c.with(e, func(op *app.Operator) error {
		if err := op.Identity.RevokeKey(e.ctx, c.Org, c.ID); err != nil {
			return notFound(err, "there is no key %q in org %q; parley key list shows all", c.ID, c.Org)
		}
		return e.created(c.JSON, map[string]string{"id": c.ID, "org": c.Org, "status": "revoked"}, "revoked %s\n", c.ID)
	})
}
