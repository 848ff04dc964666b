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
	sub Subscription

	fits bool  // room is taken for it
	pace Pace  // the lane of that room
	held int64 // bytes of it
}

func (c *claim) target() Target { return Target{c.sub.Owner, c.sub.Receiver} }

func newInFlight(store Store, length time.Duration) *inFlight {
	lane := func(most, perOrg, reserve int) Lane {
		return Lane{
			Free: most, PerOrg: perOrg, PerReceiver: perReceiver, Reserve: reserve,
			Orgs: map[string]int{}, Receivers: map[Target]int{},
		}
	}
	return &inFlight{store: store, room: Room{
		Lanes: [2]Lane{Fast: lane(fastSlots, fastPerOrg, fastReserve), Slow: lane(slowSlots, slowPerOrg, 0)},
		Late:  lane(lateSlots, latePerOrg, 0),
		Bytes: roomBytes, BytesPerOrg: roomBytesPerOrg, Held: map[string]int64{}, SlowBefore: map[Key]struct{}{},
		Claim: length,
	}}
}

// claim claims due subscriptions and takes the room for them. A subscription may change
// between the store's choice and its claim, to a receiver that has no room left. It does not
// fit then, and must be released.
func (f *inFlight) claim(ctx context.Context) ([]*claim, error) {
	left := f.left()
	if left.Free() <= 0 {
		return nil, nil
	}
	subs, err := f.store.Claim(ctx, left)
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]*claim, len(subs))
	for i := range subs {
		c := &claim{sub: subs[i], pace: f.room.Pace(subs[i].Key, subs[i].Attempts)}
		c.held, c.fits = f.room.Take(c.pace, c.target(), c.sub.Size)
		out[i] = c
	}
	return out, err
}

// left returns a copy of the room that is left.
func (f *inFlight) left() Room {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.room
	for _, l := range []*Lane{&r.Lanes[Fast], &r.Lanes[Slow], &r.Late} {
		l.Orgs, l.Receivers = maps.Clone(l.Orgs), maps.Clone(l.Receivers)
	}
	r.Held, r.SlowBefore = maps.Clone(r.Held), maps.Clone(r.SlowBefore)
	return r
}

// slow moves a claim with a slow attempt from the fast to the late lane, until it ends. If its org
// has too many there, it stays. The next claim of the subscription begins in the slow lane.
func (f *inFlight) slow(c *claim) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := &f.room
	if len(r.SlowBefore) >= maxSlowBefore {
		for k := range r.SlowBefore { // forget any other
			delete(r.SlowBefore, k)
			break
		}
	}
	r.SlowBefore[c.sub.Key] = struct{}{}
	if c.fits && c.pace == Fast && r.Left(late, c.sub.Owner) > 0 {
		r.leave(Fast, c.target())
		r.Late.take(c.target())
		c.pace = late
	}
}

// quick forgets that a subscription was slow.
func (f *inFlight) quick(k Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.room.SlowBefore, k)
}

// free gives back the room of a claim that fitted.
func (f *inFlight) free(c *claim) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.fits = false
	f.room.leave(c.pace, c.target())
	f.room.Bytes += c.held
	if c.held > 0 {
		subtract(f.room.Held, c.sub.Owner, c.held)
	}
}
