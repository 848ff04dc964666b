package delivery

import (
	"context"
	"maps"
	"sync"
	"time"
)

// inFlight claims subscriptions for this node and keeps account of the room that they use.
type inFlight struct {
	store Store

	mu   sync.Mutex
	room Room // what is left
}

// claim is a subscription that this node has claimed.
type claim struct {
	sub  Subscription
	fits bool  // room was taken for it
	held int64 // bytes of it
}

func newInFlight(store Store, length time.Duration) *inFlight {
	return &inFlight{store: store, room: Room{
		Most: slots, PerOrg: perOrg, PerReceiver: perReceiver, Bytes: roomBytes, BytesPerOrg: roomBytesPerOrg,
		Receivers: map[string]int{}, Orgs: map[string]Load{}, Claim: length,
	}}
}

// claim claims due subscriptions and takes the room for them. A subscription may change
// between the store's choice and its claim, to a receiver that has no room left. It does not
// fit then, and must be released.
func (f *inFlight) claim(ctx context.Context) ([]claim, error) {
	left := f.left()
	if left.Most <= 0 {
		return nil, nil
	}
	subs, err := f.store.Claim(ctx, left)
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]claim, len(subs))
	for i := range subs {
		c := &out[i]
		c.sub = subs[i]
		c.held, c.fits = f.room.Take(c.sub.Owner, c.sub.Receiver, c.sub.Size)
	}
	return out, err
}

// left returns a copy of the room that is left.
func (f *inFlight) left() Room {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.room
	r.Receivers, r.Orgs = maps.Clone(r.Receivers), maps.Clone(r.Orgs)
	return r
}

// free gives back the room of a claim that fitted.
func (f *inFlight) free(c *claim) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, owner, receiver := &f.room, c.sub.Owner, c.sub.Receiver
	load := r.Orgs[owner]
	r.Most++
	r.Bytes += c.held
	if r.Receivers[receiver]--; r.Receivers[receiver] == 0 {
		delete(r.Receivers, receiver)
	}
	if load = (Load{load.Slots - 1, load.Bytes - c.held}); load.Slots == 0 {
		delete(r.Orgs, owner)
	} else {
		r.Orgs[owner] = load
	}
}
