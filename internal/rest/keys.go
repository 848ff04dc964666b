package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
)

const (
	keysPath   = "/api/v1/orgs/{org}/keys"
	keyPath    = keysPath + "/{id}"
	rotatePath = keyPath + "/rotate"

	// needsAdmin ends the description of operations for admins.
	needsAdmin = " Requires svc:admin:admin."
)

// KeyPath is the path of one key.
type KeyPath struct {
	OrgPath
	ID string `path:"id" pattern:"^key-[0-9a-z]{1,64}$" doc:"The key's id." example:"key-01k5xb7d2n8f4j6s0a9g3r5w1c"`
}

// onceOnly ends the description of operations that return a secret.
const onceOnly = " The secret is returned once, and again for the same Idempotency-Key, body and credentials; " +
	"the server stores only its hash."

func (a *api) registerKeys() {
	register(a, operation{
		id: "list-keys", method: http.MethodGet, path: keysPath, tag: tagKeys,
		summary: "List the keys of the org", action: identity.ReadKeys,
		description: "Newest first, without secrets." + needsAdmin,
	}, a.listKeys)
	register(a, operation{
		id: "create-key", method: http.MethodPost, path: keysPath, tag: tagKeys, status: http.StatusCreated,
		summary: "Create a key", action: identity.ManageKeys, audit: identity.KeyCreate, errors: []int{http.StatusConflict},
		description: "For an agent or a service of the org, or for yourself; 403 for another user. `agent:<id>` must name " +
			"an agent that the org can reach. 409 if the principal is disabled." + onceOnly + needsAdmin,
	}, a.createKey)
	register(a, operation{
		id: "get-key", method: http.MethodGet, path: keyPath, tag: tagKeys,
		summary: "Get a key", action: identity.ReadKeys, validID: identity.ValidKeyID,
		description: "Without the secret." + needsAdmin,
	}, a.getKey)
	register(a, operation{
		id: "revoke-key", method: http.MethodDelete, path: keyPath, tag: tagKeys,
		summary: "Revoke a key", action: identity.ManageKeys, validID: identity.ValidKeyID, audit: identity.KeyRevoke,
		description: "The key stops working on all nodes within seconds, and its streams end within ten seconds. " +
			"Revoking it again changes nothing." + needsAdmin,
	}, a.revokeKey)
	register(a, operation{
		id: "rotate-key", method: http.MethodPost, path: rotatePath, tag: tagKeys, status: http.StatusCreated,
		summary: "Rotate a key", action: identity.ManageKeys, validID: identity.ValidKeyID, audit: identity.KeyRotate,
		errors: []int{http.StatusConflict},
		description: "Creates a key with the same principal, scopes, name and expiry. The old key expires after the " +
			"overlap, or at its own expiry if that is earlier. 409 if the key is revoked, expired or already replaced, or if " +
			"its principal is disabled." + onceOnly + needsAdmin,
	}, a.rotateKey)
	a.huma.OpenAPI().Paths[rotatePath].Post.RequestBody.Required = false
}

type listKeysInput struct {
	OrgPath
	Principal string `query:"principal" pattern:"^(user|agent|service):[a-z0-9][a-z0-9._-]{0,63}$" doc:"Filter by principal." example:"agent:scout"`
	KeyChoice
}

// KeyChoice has the parameters of a list of keys.
type KeyChoice struct {
	State      keyStateFilter `query:"state" doc:"Filter by state."`
	EndsWithin withinDays     `query:"ends_within" doc:"Only live keys that expire within so many days, sorted by expiry." example:"14"`
	NeverUsed  bool           `query:"never_used" doc:"true: only keys that were never used."`
	Scope      scopeFilter    `query:"scope" doc:"Only keys with this scope." example:"svc:admin:admin"`
	Cursor     string         `query:"cursor" doc:"Cursor: next_cursor of the previous page."`
	Limit      manageLimit    `query:"limit" doc:"Page size."`
}

type (
	keyStateFilter string
	withinDays     int
	scopeFilter    string
	manageLimit    int
)

func (withinDays) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeInteger, Format: "int64"}
	between(1, int(identity.MaxEndsWithin/(24*time.Hour)))(s)
	return s
}

func (scopeFilter) Schema(huma.Registry) *huma.Schema {
	return stringSchema(matching(scopePattern(identity.AllScopes...)))
}

// filter converts the parameters, and returns the invalid ones.
func (k *KeyChoice) filter() (f identity.KeyFilter, wrong []errs.Field) {
	f = identity.KeyFilter{
		Limit: k.Limit.size() + 1, EndsWithin: time.Duration(k.EndsWithin) * 24 * time.Hour, NeverUsed: k.NeverUsed,
	}
	if k.State != all {
		f.State = identity.KeyState(k.State)
	}
	if k.Scope != "" {
		var err error
		if f.Scope, err = identity.ParseScope(string(k.Scope)); err != nil {
			wrong = append(wrong, errs.Refused(errs.At("scope"), err))
		}
	}
	if k.Cursor != "" && !f.Continue(k.Cursor) {
		wrong = append(wrong, badCursor)
	}
	return f, wrong
}

// page converts a list of keys, which may have one more key than the page.
func (k *KeyChoice) page(f *identity.KeyFilter, list []identity.Key) *listKeysOutput {
	out := &listKeysOutput{}
	if n := k.Limit.size(); len(list) > n {
		list = list[:n]
		next := f.Cursor(&list[n-1])
		out.Body.NextCursor = &next
	}
	out.Body.Keys = make([]Key, len(list))
	for i := range list {
		out.Body.Keys[i] = keyOf(&list[i])
	}
	return out
}

func (keyStateFilter) Schema(huma.Registry) *huma.Schema {
	return filter(identity.KeyStates, all)
}

func (manageLimit) Schema(huma.Registry) *huma.Schema {
	return integer(1, identity.MaxLimit, identity.DefaultLimit)
}

const all = "all"

// size returns the page size.
func (l manageLimit) size() int {
	if l == 0 {
		return identity.DefaultLimit
	}
	return int(l)
}

type listKeysOutput struct{ Body KeyList }

func (a *api) listKeys(ctx context.Context, c *call, in *listKeysInput) (*listKeysOutput, error) {
	f, wrong := in.filter()
	if in.Principal != "" {
		var err error
		if f.Principal, err = identity.ParseRef(c.Org(), in.Principal); err != nil {
			wrong = append(wrong, errs.Field{Path: errs.At("principal"), Message: "must be user:ID, agent:ID or service:ID"})
		}
	}
	if len(wrong) > 0 {
		return nil, errs.InvalidFields(wrong...)
	}
	list, err := a.admin.Keys(ctx, c.Access, f)
	if err != nil {
		return nil, err
	}
	return in.page(&f, list), nil
}

var badCursor = errs.Field{
	Path: errs.At("cursor"), Message: "is not a cursor of this list; use next_cursor of the previous page",
}

type createKeyInput struct {
	OrgPath
	OnceHeader
	Body payload[KeyCreation]
}

type newKeyOutput struct {
	Location string `header:"Location" doc:"URL of the new key."`
	Replayed string `header:"Idempotency-Replayed" doc:"true if an earlier request with the same key was carried out."`
	Body     KeyWithSecret
}

// scopesOf converts the scopes of a request without checking them.
func scopesOf(given []string) identity.Scopes {
	out := make(identity.Scopes, len(given))
	for i, s := range given {
		out[i] = identity.Scope(s)
	}
	return out
}

func (a *api) createKey(ctx context.Context, c *call, in *createKeyInput) (*newKeyOutput, error) {
	b := &in.Body.value
	c.target = b.Principal
	r := identity.KeyRequest{Name: deref(b.Name), Scopes: b.Scopes}
	var wrong []errs.Field
	var err error
	if r.Principal, err = identity.ParseRef(c.Org(), b.Principal); err != nil && !in.Body.failed("principal") {
		wrong = append(wrong, errs.Field{Path: errs.At("principal"), Message: errs.As(err).Message})
	}
	wrong = append(wrong, notEmpty("name", b.Name)...)
	wrong = append(wrong, readEnd(b.ExpiresAt, &r.ExpiresAt)...)
	if err := in.Body.check(r.Validate(time.Now()), wrong...); err != nil {
		return nil, err
	}
	if err := c.Caller().CheckConfirmed(scopesOf(r.Scopes)); err != nil {
		return nil, err
	}
	ctx, once, err := c.begin(ctx, b)
	if err != nil {
		return nil, err
	}
	k, secret, err := a.admin.CreateKey(ctx, c.Access, r)
	if err != nil {
		return nil, err
	}
	return newKey(c.request.URL.EscapedPath(), &k, secret, once), nil
}

const timeRule = "must be a time such as 2026-03-02T10:00:00Z"

// parseTime parses a time in RFC 3339 and truncates it to microseconds, the precision of the store.
func parseTime(s string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339Nano, s)
	return t.UTC().Truncate(time.Microsecond), err == nil
}

// readEnd parses the optional expiry of a key.
func readEnd(given *string, into *time.Time) []errs.Field {
	if given == nil {
		return nil
	}
	end, ok := parseTime(*given)
	if *into = end; !ok {
		return []errs.Field{{Path: errs.At("expires_at"), Message: timeRule}}
	}
	return nil
}

// newKey returns a new key with its secret. at is the path of the list that contains it.
func newKey(at string, k *identity.Key, secret string, once *idempotency.Once) *newKeyOutput {
	return &newKeyOutput{
		Location: at + "/" + k.ID, Replayed: replayed(once.Replayed()), Body: KeyWithSecret{Secret: secret, Key: keyOf(k)},
	}
}

type keyInput struct{ KeyPath }

type keyOutput struct{ Body Key }

func (a *api) getKey(ctx context.Context, c *call, in *keyInput) (*keyOutput, error) {
	k, err := a.admin.Key(ctx, c.Access, in.ID)
	if err != nil {
		return nil, err
	}
	return &keyOutput{Body: keyOf(&k)}, nil
}

func (a *api) revokeKey(ctx context.Context, c *call, in *keyInput) (*keyOutput, error) {
	k, err := a.admin.RevokeKey(ctx, c.Access, in.ID)
	if err != nil {
		return nil, err
	}
	return &keyOutput{Body: keyOf(&k)}, nil
}

type rotateKeyInput struct {
	KeyPath
	OnceHeader
	Body payload[KeyRotation] // optional
}

func (a *api) rotateKey(ctx context.Context, c *call, in *rotateKeyInput) (*newKeyOutput, error) {
	return c.rotate(ctx, &in.Body, rotation{
		at:  "/api/v1/orgs/" + c.Org() + "/keys",
		key: func() (identity.Key, error) { return a.admin.Key(ctx, c.Access, in.ID) },
		rotate: func(ctx context.Context, overlap time.Duration) (identity.Key, string, error) {
			return a.admin.RotateKey(ctx, c.Access, in.ID, overlap)
		},
	})
}

// rotation describes how to rotate a key: one of the org, or one of the caller.
type rotation struct {
	at     string // path of the list that contains the new key
	key    func() (identity.Key, error)
	rotate func(ctx context.Context, overlap time.Duration) (identity.Key, string, error)
}

func (c *call) rotate(ctx context.Context, body *payload[KeyRotation], r rotation) (*newKeyOutput, error) {
	overlap := seconds(or(body.value.OverlapSeconds, 0))
	if err := body.check(identity.CheckOverlap(overlap)); err != nil {
		return nil, err
	}
	old, err := r.key()
	if err == nil {
		err = c.Caller().CheckConfirmed(old.Scopes)
	}
	if err != nil {
		return nil, err
	}
	ctx, once, err := c.begin(ctx, &body.value)
	if err != nil {
		return nil, err
	}
	k, secret, err := r.rotate(ctx, overlap)
	if err != nil {
		return nil, err
	}
	return newKey(r.at, &k, secret, once), nil
}
