package dispatch

import (
	"fmt"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/identity"
)

// The number of remembered refusals is limited, and no org displaces those of another.
func TestRefusalsAreBounded(t *testing.T) {
	t.Parallel()
	r := newRefusals()
	note := func(org, agent, key string) {
		p := identity.Principal{Org: org, Kind: identity.Service, ID: "crm"}
		r.note(Refusal{Agent: agent, KeyID: key, Principal: p, Reason: WrongScope, At: time.Now()})
	}
	note("quiet", "scout", "key-1")
	for i := range 10 * maxRefusals {
		note("loud", "scout", fmt.Sprintf("key-%d", i))
		note("loud", fmt.Sprintf("agent-%d", i), "key-1")
	}
	if n := len(r.byOrg["loud"]); n != maxRefusals {
		t.Errorf("%d refusals of an org are remembered; want %d", n, maxRefusals)
	}
	got := r.of("loud", "scout")
	if len(got) == 0 || len(got) > maxConnection || got[0].KeyID != fmt.Sprintf("key-%d", 10*maxRefusals-1) {
		t.Errorf("%+v; want the newest first", got)
	}
	if len(r.of("quiet", "scout")) != 1 {
		t.Error("another org's refusals are forgotten")
	}
	for i := range 2 * maxRefusalOrgs {
		note(fmt.Sprintf("org-%d", i), "scout", "key-1")
	}
	if n := len(r.byOrg); n > maxRefusalOrgs {
		t.Errorf("refusals of %d orgs are remembered; want %d at most", n, maxRefusalOrgs)
	}
}
