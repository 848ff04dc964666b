package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// keyRecord is what this program reads of a key.
type keyRecord struct {
	ID         string     `json:"id"`
	Secret     string     `json:"secret"`
	Prefix     string     `json:"prefix"`
	Principal  string     `json:"principal"`
	Name       string     `json:"name"`
	Scopes     []string   `json:"scopes"`
	State      string     `json:"state"`
	Disabled   bool       `json:"principal_disabled"`
	CreatedAt  time.Time  `json:"created_at"`
	CreatedBy  string     `json:"created_by"`
	ExpiresAt  *time.Time `json:"expires_at"`
	RevokedAt  *time.Time `json:"revoked_at"`
	LastUsedAt *time.Time `json:"last_used_at"`
	ReplacedBy *string    `json:"replaced_by"`
}

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// state says in one cell whether the key works.
func (k *keyRecord) state() string {
	switch {
	case k.State == "live" && k.Disabled:
		return "live, but disabled"
	case k.State == "live" && k.ExpiresAt != nil:
		return "until " + when(*k.ExpiresAt)
	}
	return k.State
}

func keyPath(id string) string { return "/keys/" + url.PathEscape(id) }

// newKey sends a call that makes a key, and prints the secret alone. It is sent once:
// whether it was carried out cannot be told from a lost answer.
func (e *env) newKey(cl *client, org string, asJSON bool, r call) error {
	var k keyRecord
	raw, err := cl.into(e.ctx, r, &k)
	if err != nil || asJSON {
		return e.rawOr(raw, err)
	}
	fmt.Fprintf(e.stderr, "created %s for %s in org %s: %s; %s\n", cleanLine(k.ID), cleanLine(k.Principal), org,
		cleanLine(strings.Join(k.Scopes, " ")), until(timeOf(k.ExpiresAt)))
	_, err = fmt.Fprintln(e.stdout, cleanLine(k.Secret))
	return err
}

func (c *keyCreateCmd) post(e *env, cl *client, expires time.Time) error {
	fields := map[string]any{"principal": c.As, "scopes": c.Scope}
	if c.Name != "" {
		fields["name"] = c.Name
	}
	if at := timestamp(expires); at != nil {
		fields["expires_at"] = *at
	}
	return e.newKey(cl, c.Org, c.JSON, call{method: http.MethodPost, path: "/keys", send: fields})
}

// get lists all keys, page by page.
func (c *keyListCmd) get(e *env, cl *client, err error) error {
	if err != nil {
		return err
	}
	query := url.Values{"state": {c.State}}
	if c.As != "" {
		query.Set("principal", c.As)
	}
	t := table{head: []string{"ID", "PREFIX", "PRINCIPAL", "STATE", "LAST USED (UTC)", "NAME", "SCOPES"}}
	list, err := all(e, cl, "keys", query, func(k *keyRecord) {
		t.add(k.ID, k.Prefix, k.Principal, k.state(), when(timeOf(k.LastUsedAt)), k.Name, strings.Join(k.Scopes, " "))
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(map[string]any{"keys": list})
	}
	return e.list(&t, e.palette(), "key", "keys", len(list), 1, false)
}

func (c *keyRevokeCmd) revoke(e *env, cl *client, err error) error {
	if err != nil {
		return err
	}
	var k keyRecord
	raw, err := cl.into(e.ctx, call{method: http.MethodDelete, path: keyPath(c.ID), safe: true}, &k)
	if err != nil || c.JSON {
		return e.rawOr(raw, err)
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
	var k keyRecord
	if done, err := c.ask(e, call{method: http.MethodGet, path: keyPath(c.ID)}, &k); done {
		return err
	}
	rec := record{p: e.palette()}
	rec.heading(k.ID)
	rec.field("name", cleanLine(k.Name))
	rec.field("principal", cleanLine(k.Principal))
	rec.field("scopes", cleanLine(strings.Join(k.Scopes, " ")))
	rec.field("prefix", cleanLine(k.Prefix))
	rec.field("state", cleanLine(k.state()))
	rec.field("created", when(k.CreatedAt)+" UTC by "+cleanLine(k.CreatedBy))
	rec.field("last used", when(timeOf(k.LastUsedAt)))
	rec.field("expires", when(timeOf(k.ExpiresAt)))
	if k.RevokedAt != nil {
		rec.field("revoked", when(*k.RevokedAt)+" UTC")
	}
	if k.ReplacedBy != nil {
		rec.field("replaced by", cleanLine(*k.ReplacedBy))
	}
	_, err := e.stdout.Write([]byte(rec.b.String()))
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
	cl, err := c.client(e)
	if err != nil {
		return err
	}
	body := []byte(`{"overlap_seconds":` + strconv.Itoa(int(c.Overlap/time.Second)) + `}`)
	return e.newKey(cl, c.Org, c.JSON, call{method: http.MethodPost, path: keyPath(c.ID) + "/rotate", body: body})
}
