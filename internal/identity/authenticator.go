package identity

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

// CredentialStore is the part of the store that an Authenticator uses.
type CredentialStore interface {
	// KeyByHash returns NotFound for an unknown hash.
	KeyByHash(ctx context.Context, h Hash) (Key, error)
	// TouchKeys records when keys were last used.
	TouchKeys(ctx context.Context, used map[string]time.Time) error
	// Epoch returns a number that changes whenever any process may have revoked a right.
	// Caches of rights are emptied when it changes.
	Epoch(ctx context.Context) (int64, error)
}

// Authenticator turns a secret into a Caller. It caches the callers of keys and tokens. A
// miss is not cached, so a new key works at once. Revoked drops what this process revokes at
// once. Watch empties the cache within one poll after any process revoked a credential or
// disabled a principal.
type Authenticator struct {
	store    CredentialStore
	tokens   Tokens         // nil: keys only
	external ExternalTokens // nil: no tokens of other issuers
	now      func() time.Time

	callers atomic.Pointer[sync.Map] // Hash → *known; replaced as a whole when rights change
	size    atomic.Int64
	epoch   atomic.Int64

	// Revocations by this process are numbered. A cached caller is looked up again if it is
	// older than the last revocation in its org, or the last one whose org is unknown.
	changes atomic.Int64
	orgs    sync.Map     // org → *atomic.Int64, the number of its last revocation
	all     atomic.Int64 // the number of the last revocation whose org is unknown
}

type known struct {
	caller *Caller
	seen   int64         // the number of the last revocation before the look-up
	org    *atomic.Int64 // the number of the last revocation in the caller's org
	token  bool          // not a key; the last use of tokens is not recorded
	until  time.Time     // when to look it up again; zero: never
	used   atomic.Int64  // unix seconds of the last use; 0: not used since the last flush
}

// maxKnown bounds the cache. When it is full, it is emptied.
const maxKnown = 100_000

// NewAuthenticator returns an Authenticator with an empty cache.
func NewAuthenticator(store CredentialStore, now func() time.Time) *Authenticator {
	a := &Authenticator{store: store, now: now}
	a.callers.Store(new(sync.Map))
	return a
}

var errBadKey = errs.New(errs.Unauthenticated, "auth.invalid",
	"the API key or access token is unknown, expired or revoked; "+
		"ask an admin of your org for a new key, or ask for a new token")

// Authenticate returns the caller that holds the secret.
func (a *Authenticator) Authenticate(ctx context.Context, secret string) (*Caller, error) {
	token := strings.HasPrefix(secret, TokenPrefix)
	external := a.external != nil && looksLikeJWT(secret)
	if !external && (token && (a.tokens == nil || !WellFormedToken(secret)) || !token && !WellFormed(secret)) {
		return nil, errBadKey
	}
	now := a.now()
	hash := HashSecret(secret)
	// Loaded before the look-up: if rights change during it, the result goes into a map
	// that is no longer read.
	callers, seen := a.callers.Load(), a.changes.Load()
	if v, ok := callers.Load(hash); ok && a.current(v.(*known)) {
		k := v.(*known)
		if !k.caller.ExpiresAt.IsZero() && !now.Before(k.caller.ExpiresAt) {
			return nil, errBadKey
		}
		if k.until.IsZero() || now.Before(k.until) {
			if sec := now.Unix(); !k.token && k.used.Load() != sec {
				k.used.Store(sec)
			}
			return k.caller, nil
		}
	}
	var caller *Caller
	var err error
	if external {
		caller, err = a.external.CallerByJWT(ctx, secret)
	} else {
		caller, err = a.lookUp(ctx, hash, token, now)
	}
	switch {
	case err != nil && errs.KindOf(err) == errs.NotFound:
		return nil, errBadKey
	case err != nil:
		return nil, err
	}
	k := &known{caller: caller, seen: seen, org: a.org(caller.Org), token: token || external}
	switch {
	case external:
		k.until = now.Add(externalFor)
	case !token:
		k.used.Store(now.Unix())
	}
	if a.size.Add(1) > maxKnown {
		a.forget()
		callers = a.callers.Load()
	}
	callers.Store(hash, k)
	return k.caller, nil
}

// Revoked drops the cached callers of an org, or of all orgs if org is empty. The result of
// a look-up that has begun is dropped, too. It takes constant time.
func (a *Authenticator) Revoked(org string) {
	last := &a.all
	if org != "" {
		last = a.org(org)
	}
	for n := a.changes.Add(1); ; {
		old := last.Load()
		if old >= n || last.CompareAndSwap(old, n) {
			return
		}
	}
}

func (a *Authenticator) org(id string) *atomic.Int64 {
	if v, ok := a.orgs.Load(id); ok {
		return v.(*atomic.Int64)
	}
	v, _ := a.orgs.LoadOrStore(id, new(atomic.Int64))
	return v.(*atomic.Int64)
}

// current reports whether nothing was revoked in the caller's org since the look-up.
func (a *Authenticator) current(k *known) bool {
	return k.seen >= k.org.Load() && k.seen >= a.all.Load()
}

// lookUp reads the caller of a key or token from the store. It returns NotFound if the
// credential no longer works.
func (a *Authenticator) lookUp(ctx context.Context, h Hash, token bool, now time.Time) (*Caller, error) {
	if token {
		return a.tokens.CallerByToken(ctx, h)
	}
	key, err := a.store.KeyByHash(ctx, h)
	if err != nil {
		return nil, err
	}
	if key.Disabled || !key.Live(now) {
		return nil, errs.ErrNotFound
	}
	return &Caller{Principal: key.Principal, KeyID: key.ID, Scopes: key.Scopes, ExpiresAt: key.ExpiresAt}, nil
}

// forget empties the cache and returns its content.
func (a *Authenticator) forget() *sync.Map {
	a.size.Store(0)
	return a.callers.Swap(new(sync.Map))
}

// Watch calls Refresh every interval and Flush every flush, until ctx ends.
func (a *Authenticator) Watch(ctx context.Context, interval, flush time.Duration, onError func(error)) {
	poll, touch := time.NewTicker(interval), time.NewTicker(flush)
	defer poll.Stop()
	defer touch.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
			if err := a.Refresh(ctx); err != nil && ctx.Err() == nil {
				onError(err)
			}
		case <-touch.C:
			if err := a.Flush(ctx); err != nil && ctx.Err() == nil {
				onError(err)
			}
		}
	}
}

// Refresh empties the cache if rights changed since the last call. It also empties the cache
// if the store fails: a right that cannot be confirmed is not granted from the cache.
func (a *Authenticator) Refresh(ctx context.Context) error {
	epoch, err := a.store.Epoch(ctx)
	if err != nil {
		a.forget()
		return err
	}
	if a.epoch.Swap(epoch) != epoch {
		return a.touch(ctx, a.forget())
	}
	return nil
}

// Flush records when keys were last used.
func (a *Authenticator) Flush(ctx context.Context) error { return a.touch(ctx, a.callers.Load()) }

func (a *Authenticator) touch(ctx context.Context, callers *sync.Map) error {
	used := map[string]time.Time{}
	callers.Range(func(_, v any) bool {
		k := v.(*known)
		if sec := k.used.Swap(0); sec != 0 {
			used[k.caller.KeyID] = time.Unix(sec, 0).UTC()
		}
		return true
	})
	if len(used) == 0 {
		return nil
	}
	return a.store.TouchKeys(ctx, used)
}
