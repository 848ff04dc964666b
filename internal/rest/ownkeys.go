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

// OwnKeyPath is the path of one of the caller's own keys.
type OwnKeyPath struct {
	ID string `path:"id" pattern:"^key-[0-9a-z]{1,64}$" doc:"The key's id." example:"key-01k5xb7d2n8f4j6s0a9g3r5w1c"`
}

func (a *api) registerOwnKeys() {
	const who = " Needs no scope; a program that acts for a person is refused."
	register(a, operation{
		id: "list-own-keys", method: http.MethodGet, path: ownKeysPath, tag: tagOwnKeys, self: true,
		summary:     "List your own keys",
		description: "Those of the principal that the credential speaks for, newest first, without their secrets." + who,
	}, a.listOwnKeys)
	register(a, operation{
		id: "create-own-key", method: http.MethodPost, path: ownKeysPath, tag: tagOwnKeys, self: true,
		status: http.StatusCreated, errors: []int{http.StatusConflict},
		summary: "Create a key for yourself", audit: identity.KeyCreate,
		description: "With scopes that the credential of this request has, and no longer life: 403 and 422 otherwise. " +
			"In a session, what a person may allow a program. 409: you have as many keys as you may have." + onceOnly + who,
	}, a.createOwnKey)
	register(a, operation{
		id: "get-own-key", method: http.MethodGet, path: ownKeyPath, tag: tagOwnKeys, self: true, validID: identity.ValidKeyID,
		summary:     "Get one of your own keys",
		description: "Without its secret." + who,
	}, a.getOwnKey)
	register(a, operation{
		id: "revoke-own-key", method: http.MethodDelete, path: ownKeyPath, tag: tagOwnKeys, self: true,
		validID: identity.ValidKeyID, summary: "Revoke one of your own keys", audit: identity.KeyRevoke,
		description: "It stops working on all nodes within seconds; it may be the key of this request. " +
			"To revoke it again changes nothing." + who,
	}, a.revokeOwnKey)
	register(a, operation{
		id: "rotate-own-key", method: http.MethodPost, path: ownRotatePath, tag: tagOwnKeys, self: true,
		status: http.StatusCreated, validID: identity.ValidKeyID,
		summary: "Replace one of your own keys", audit: identity.KeyRotate, errors: []int{http.StatusConflict},
		description: "Makes a key with the same scopes, name and expiry, and lets the old one expire after the overlap. " +
			"403: the key may do more than the credential of this request, or for longer. " +
			"409: the key is revoked, expired or replaced already." + onceOnly + who,
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
	Body payload[KeyRotation] // may be left out
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
