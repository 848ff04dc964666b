package idempotency

import (
	"bytes"
	"testing"
)

// A secret is shown again to whoever has the credential that it was made for, and the
// store does not see it.
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
		t.Errorf("%q %v", got, err)
	}
	if bytes.Contains(first.Kept(), []byte("secret")) {
		t.Error("the secret is kept in clear")
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
			t.Errorf("%s: %q %v", c.name, got, err)
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
		t.Error(o, err)
	}
	if got, err := o.Secret("x"); got != "x" || err != nil {
		t.Error(got, err)
	}
}
