package dispatch

import (
	"slices"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/identity"
)

// Refusal is the last attempt of a credential to work for an agent that was refused.
type Refusal struct {
	Agent     string
	KeyID     string
	Principal identity.Principal
	Reason    ConnectionState // WrongScope or OtherAgent
	At        time.Time
}

// refusals remembers refused workers on this node, to help an admin who connects one. The
// number of refusals is limited per org, so that one org cannot displace those of another, and
// so is the number of orgs.
type refusals struct {
	mu    sync.Mutex
	byOrg map[string][]Refusal // the newest last
}

const (
	maxRefusals    = 50 // per org
	maxRefusalOrgs = 1000
)

func newRefusals() *refusals { return &refusals{byOrg: map[string][]Refusal{}} }

func (r *refusals) note(x Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	org := x.Principal.Org
	list, ok := r.byOrg[org]
	if !ok && len(r.byOrg) >= maxRefusalOrgs {
		clear(r.byOrg)
	}
	list = slices.DeleteFunc(list, func(o Refusal) bool { return o.Agent == x.Agent && o.KeyID == x.KeyID })
	if len(list) >= maxRefusals {
		list = slices.Delete(list, 0, 1)
	}
	r.byOrg[org] = append(list, x)
}

// of returns the refusals of an agent, the newest first.
func (r *refusals) of(org, agent string) []Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Refusal
	for _, x := range slices.Backward(r.byOrg[org]) {
		if x.Agent == agent && len(out) < maxConnection {
			out = append(out, x)
		}
	}
	return out
}
