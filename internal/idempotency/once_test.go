package idempotency

import (
	"bytes"
	"testing"
)

// A secret is shown again only to the credential that it was made for, and is not readable in the
// store.
func TestASecretIsSealedForItsCaller(t *testing.T) {
	t.Parallel()
	begin := func(value, operation, credential string) *Once {
		k, err := New(operation, value, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, o, err := Begin(t.Context(), k, "acme", "user:ann", credential)
		if err != nil || From(ctx) != o {
			t.Fatal(err)
		}
		return o
	}
	first := begin("k", "POST /keys", "Bearer a")
	if err := first.Seal("plk_secret"); err != nil {
		t.Fatal(err)
	}
	if got, err := first.Secret("plk_secret"); err != nil || got != "plk_secret" || first.Replayed() {
		t.Errorf("secret = %q, %v; want plk_secret, not a replay", got, err)
	}
	if bytes.Contains(first.Kept(), []byte("secret")) {
		t.Error("the secret is stored unencrypted")
	}
	for _, c := range []struct {
		name string
		o    *Once
		want error
	}{
		{"the same", begin("k", "POST /keys", "Bearer a"), nil},
		{"another credential", begin("k", "POST /keys", "Bearer b"), ErrSealed},
		{"another key", begin("l", "POST /keys", "Bearer a"), ErrSealed},
		{"another operation", begin("k", "POST /invitations", "Bearer a"), ErrSealed},
	} {
		c.o.Replay(first.Kept())
		got, err := c.o.Secret("another")
		if err != c.want || err == nil && got != "plk_secret" || !c.o.Replayed() {
			t.Errorf("%s: secret = %q, %v; want %v and a replay", c.name, got, err, c.want)
		}
	}
	empty := begin("k", "POST /keys", "Bearer a")
	empty.Replay(nil)
	if _, err := empty.Secret("x"); err != ErrSealed {
		t.Error(err)
	}
}

func TestACommandWithoutAKeyIsNotKept(t *testing.T) {
	t.Parallel()
	ctx, o, err := Begin(t.Context(), nil, "acme", "user:ann", "c")
	if o != nil || err != nil || From(ctx) != nil || o.Replayed() || o.Seal("x") != nil {
		t.Errorf("got %v, %v; want nil, nil", o, err)
	}
	if got, err := o.Secret("x"); got != "x" || err != nil {
		t.Errorf("secret = %q, %v; want x", got, err)
	}
}
