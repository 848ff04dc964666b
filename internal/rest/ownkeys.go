package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

const (
	ownKeysPath   = mePath + "/keys"
	ownKeyPath    = ownKeysPath + "/{id}"
	ownRotatePath = ownKeyPath + "/rotate"
)

// OwnKeyPath is the path of a key of the caller.
type OwnKeyPath struct {
	ID string `path:"id" pattern:"^key-[0-9a-z]{1,64}$" doc:"The key's id." example:"key-01k5xb7d2n8f4j6s0a9g3r5w1c"`
}

func (a *api) registerOwnKeys() {
	const who = " No scope required; OAuth clients that act for a user are rejected."
	register(a, operation{
		id: "list-own-keys", method: http.MethodGet, path: ownKeysPath, tag: tagOwnKeys, self: true,
		summary:     "List your own keys",
		description: "Keys of the caller's principal, newest first, without secrets." + who,
	}, a.listOwnKeys)
	register(a, operation{
		id: "create-own-key", method: http.MethodPost, path: ownKeysPath, tag: tagOwnKeys, self: true,
		status: http.StatusCreated, errors: []int{http.StatusConflict},
		summary: "Create a key for yourself", audit: identity.KeyCreate,
		description: "The scopes and the lifetime must not exceed those of the credential of this request: 403 and 422 " +
			"otherwise. In a session, the limits are those of an OAuth client that acts for the user. " +
			"409 if you have the maximum number of keys." + onceOnly + who,
	}, a.createOwnKey)
	register(a, operation{
		id: "get-own-key", method: http.MethodGet, path: ownKeyPath, tag: tagOwnKeys, self: true, validID: identity.ValidKeyID,
		summary:     "Get one of your own keys",
		description: "Without the secret." + who,
	}, a.getOwnKey)
	register(a, operation{
		id: "revoke-own-key", method: http.MethodDelete, path: ownKeyPath, tag: tagOwnKeys, self: true,
		validID: identity.ValidKeyID, summary: "Revoke one of your own keys", audit: identity.KeyRevoke,
		description: "The key stops working on all nodes within seconds. It may be the key of this request. " +
			"Revoking it again changes nothing." + who,
	}, a.revokeOwnKey)
	register(a, operation{
		id: "rotate-own-key", method: http.MethodPost, path: ownRotatePath, tag: tagOwnKeys, self: true,
		status: http.StatusCreated, validID: identity.ValidKeyID,
		summary: "Rotate one of your own keys", audit: identity.KeyRotate, errors: []int{http.StatusConflict},
		description: "Creates a key with the same scopes, name and expiry. The old key expires after the overlap. " +
			"403 if the key has more scopes or a longer lifetime than the credential of this request. " +
			"409 if the key is revoked, expired or already replaced." + onceOnly + who,
	}, a.rotateOwnKey)
	a.huma.OpenAPI().Paths[ownRotatePath].Post.RequestBody.Required = false
}

type listOwnKeysInput struct{ KeyChoice }

func (a *api) listOwnKeys(ctx context.Context, c *call, in *listOwnKeysInput) (*listKeysOutput, error) {
	f, wrong := in.filter()
	if len(wrong) > 0 {
		return nil, errs.InvalidFields(wrong...)
	}
	access, err := c.As(identity.ManageOwnCredentials)
	if err != nil {
		return nil, err
	}
	list, err := a.admin.OwnKeys(ctx, access, f)
	if err != nil {
		return nil, err
	}
	return in.page(&f, list), nil
}

type createOwnKeyInput struct {
	OnceHeader
	Body payload[OwnKeyCreation]
}

func (a *api) createOwnKey(ctx context.Context, c *call, in *createOwnKeyInput) (*newKeyOutput, error) {
	b, caller := &in.Body.value, c.Caller()
	c.target = caller.Ref()
	r := identity.KeyRequest{Principal: caller.Principal, Name: deref(b.Name), Scopes: b.Scopes}
	wrong := append(notEmpty("name", b.Name), readEnd(b.ExpiresAt, &r.ExpiresAt)...)
	if err := in.Body.check(r.Validate(time.Now()), wrong...); err != nil {
		return nil, err
	}
	if err := caller.CheckConfirmed(scopesOf(r.Scopes)); err != nil {
		return nil, err
	}
	ctx, once, err := c.begin(ctx, b)
	if err != nil {
		return nil, err
	}
	access, err := c.As(identity.ManageOwnCredentials)
	if err != nil {
		return nil, err
	}
	k, secret, err := a.admin.CreateOwnKey(ctx, access, r)
	if err != nil {
		return nil, err
	}
	return newKey(ownKeysPath, &k, secret, once), nil
}

type ownKeyInput struct{ OwnKeyPath }

func (a *api) getOwnKey(ctx context.Context, c *call, in *ownKeyInput) (*keyOutput, error) {
	access, err := c.As(identity.ManageOwnCredentials)
	if err != nil {
		return nil, err
	}
	k, err := a.admin.OwnKey(ctx, access, in.ID)
	if err != nil {
		return nil, err
	}
	return &keyOutput{Body: keyOf(&k)}, nil
}

func (a *api) revokeOwnKey(ctx context.Context, c *call, in *ownKeyInput) (*keyOutput, error) {
	access, err := c.As(identity.ManageOwnCredentials)
	if err != nil {
		return nil, err
	}
	k, err := a.admin.RevokeOwnKey(ctx, access, in.ID)
	if err != nil {
		return nil, err
	}
	return &keyOutput{Body: keyOf(&k)}, nil
}

type rotateOwnKeyInput struct {
	OwnKeyPath
	OnceHeader
	Body payload[KeyRotation] // optional
}

func (a *api) rotateOwnKey(ctx context.Context, c *call, in *rotateOwnKeyInput) (*newKeyOutput, error) {
	var access identity.Access
	return c.rotate(ctx, &in.Body, rotation{
		at: ownKeysPath,
		key: func() (_ identity.Key, err error) {
			if access, err = c.As(identity.ManageOwnCredentials); err != nil {
				return identity.Key{}, err
			}
			return a.admin.OwnKey(ctx, access, in.ID)
		},
		rotate: func(ctx context.Context, overlap time.Duration) (identity.Key, string, error) {
			return a.admin.RotateOwnKey(ctx, access, in.ID, overlap)
		},
	})
}
