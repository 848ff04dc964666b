package relay

import "testing"

// A task that is followed when its relay gets another credential goes on with the new one. The failure
// with the old one says nothing of the remote.
func TestFollowerTakesTheNewClient(t *testing.T) {
	t.Parallel()
	auth := newAuthenticator(nil, nil, nil)
	inst := &instance{e: &Engine{net: &network{}}, remote: &client{auth: auth}}
	f := &follower{inst: inst, c: &client{auth: auth}}
	for range tolerated {
		if err := f.again(t.Context(), &statusError{code: 401}); err != nil {
			t.Fatal(err)
		}
		if f.c != inst.remote {
			t.Fatal("the follower keeps the client of the old credential")
		}
		inst.remote = &client{auth: auth} // changed again
	}
	if inst.breaker.isOpen() {
		t.Error("the remote counts as down")
	}
}
