package delivery

import (
	"slices"
	"time"
)

// Pace selects a lane. Deliveries share the slots of a node in lanes, so that receivers that
// fail, stall or respond slowly do not take the slots of those that work.
type Pace int

// The lanes. A delivery begins in the fast lane, unless its last attempt failed or was slow. If an
// attempt takes longer than slowAfter, it moves from the fast to the late lane. No delivery begins
// there, so however many stall, retries have the slow lane to themselves.
const (
	Fast Pace = iota
	Slow
	late
)

// Limits of one node. The owner of a subscription chooses the receiver, so each owner (an
// org) gets a limited share: slow receivers delay the deliveries of their own org only.
const (
	fastSlots, fastPerOrg = 64, 8
	slowSlots, slowPerOrg = 192, 16
	lateSlots, latePerOrg = 128, 48
	// fastReserve is the part of the fast lane for orgs that have nothing in the other lanes.
	fastReserve = 16

	perReceiver = 4 // of one org, in the fast and in the slow lane; see Room.atOnce
	slowAfter   = time.Second
	// Bytes of the requests in flight. Small requests are not counted; the slots limit them.
	roomBytes       = 64 << 20
	roomBytesPerOrg = 16 << 20
	smallDelivery   = 64 << 10
	// maxSlowBefore limits the subscriptions that are remembered as slow.
	maxSlowBefore = 1024
)

// Target is a receiver of one org. Orgs that send to the same host do not share its limit.
type Target struct{ Owner, Receiver string }

// Lane is a lane and what is in it.
type Lane struct {
	Free        int // slots for further deliveries
	PerOrg      int
	PerReceiver int
	Reserve     int            // slots for owners without slow requests
	Orgs        map[string]int // in flight, by owner
	Receivers   map[Target]int // in flight, by receiver
}

// Room is the capacity that a node has left. The store asks it which subscriptions fit.
type Room struct {
	Lanes       [2]Lane // by Pace: those in which deliveries begin
	Late        Lane    // attempts that were moved out of the fast lane
	Bytes       int64   // of further deliveries
	BytesPerOrg int64
	Held        map[string]int64 // bytes in flight, by owner
	SlowBefore  map[Key]struct{} // subscriptions whose last attempt was slow
	Claim       time.Duration    // the length of a claim
}

// Pace returns the lane in which a subscription with so many failed attempts begins.
func (r *Room) Pace(k Key, attempts int) Pace {
	if _, slow := r.SlowBefore[k]; slow || attempts > 0 {
		return Slow
	}
	return Fast
}

func (r *Room) lane(p Pace) *Lane {
	if p == late {
		return &r.Late
	}
	return &r.Lanes[p]
}

// Free returns how many further deliveries may begin.
func (r *Room) Free() int { return max(0, r.Lanes[Fast].Free) + max(0, r.Lanes[Slow].Free) }

// Share returns how many deliveries of one owner a claim takes into each lane if so many owners have
// due ones.
func (r *Room) Share(owners int) (share [2]int) {
	for p := range r.Lanes {
		share[p] = max(1, r.Lanes[p].Free/max(1, owners))
	}
	return share
}

// InUse returns how many deliveries of an owner are in flight.
func (r *Room) InUse(owner string) int { return r.Lanes[Fast].Orgs[owner] + r.slow(owner) }

// slow returns how many deliveries of an owner are in flight outside of the fast lane.
func (r *Room) slow(owner string) int { return r.Lanes[Slow].Orgs[owner] + r.Late.Orgs[owner] }

// Left returns how many further deliveries of an owner fit into a lane. An owner may hold at most as
// many slots as half of those that are free, so the last slots remain for those who have none.
func (r *Room) Left(p Pace, owner string) int {
	l := r.lane(p)
	free := l.Free
	if r.slow(owner) > 0 {
		free -= l.Reserve
	}
	return min(free, min(l.PerOrg, max(1, l.Free/2))-l.Orgs[owner])
}

// Full returns the receivers of an owner that already have as many requests in flight as a lane
// allows.
func (r *Room) Full(p Pace, owner string) (receivers []string) {
	busy := r.Lanes[p].Receivers
	for t, n := range busy {
		if t.Owner == owner && n >= r.atOnce(p, t) {
			receivers = append(receivers, t.Receiver)
		}
	}
	if p == Fast {
		for _, suspect := range r.Suspects(owner) {
			if t := (Target{owner, suspect}); busy[t] == 0 && r.atOnce(p, t) == 0 {
				receivers = append(receivers, suspect)
			}
		}
	}
	return receivers
}

// Take takes the room for a delivery and reports whether it fits. held is the number of bytes that
// it counts. An org without large deliveries in flight may exceed its share of bytes.
func (r *Room) Take(p Pace, t Target, size int64) (held int64, fits bool) {
	size, has := weight(size), r.Held[t.Owner]
	if size > 0 && (size > r.Bytes || has > 0 && has+size > min(r.BytesPerOrg, r.Bytes/2)) {
		return 0, false
	}
	if !r.enter(p, t) {
		return 0, false
	}
	if size > 0 {
		r.Bytes -= size
		r.Held[t.Owner] = has + size
	}
	return size, true
}

// enter takes a slot of a lane and reports whether there was one.
func (r *Room) enter(p Pace, t Target) bool {
	l := &r.Lanes[p]
	if r.Left(p, t.Owner) <= 0 || l.Receivers[t] >= r.atOnce(p, t) {
		return false
	}
	l.take(t)
	return true
}

func (l *Lane) take(t Target) {
	l.Free--
	l.Orgs[t.Owner]++
	l.Receivers[t]++
}

// Suspect reports whether a receiver has slow requests in flight. Perhaps it stalls as a whole, so
// the store claims other subscriptions first.
func (r *Room) Suspect(t Target) bool { return r.Lanes[Slow].Receivers[t]+r.Late.Receivers[t] > 0 }

// Suspects returns the receivers of an owner that are suspect.
func (r *Room) Suspects(owner string) (receivers []string) {
	for _, l := range []*Lane{&r.Lanes[Slow], &r.Late} {
		for t := range l.Receivers {
			if t.Owner == owner && !slices.Contains(receivers, t.Receiver) {
				receivers = append(receivers, t.Receiver)
			}
		}
	}
	return receivers
}

// atOnce returns how many requests a receiver may have in flight in a lane. A suspect one gets
// subscriptions that are not known to be slow one at a time, and only while its org has room in the
// late lane for all that it has in the fast one. Otherwise they would fill the fast lane again and
// again.
func (r *Room) atOnce(p Pace, t Target) int {
	switch {
	case p != Fast || !r.Suspect(t):
		return r.Lanes[p].PerReceiver
	case r.Left(late, t.Owner) <= r.Lanes[Fast].Orgs[t.Owner]:
		return 0
	default:
		return 1
	}
}

// leave gives back a slot of a lane.
func (r *Room) leave(p Pace, t Target) {
	l := r.lane(p)
	l.Free++
	subtract(l.Orgs, t.Owner, 1)
	subtract(l.Receivers, t, 1)
}

// subtract subtracts n from a count, and removes the count if it is zero then.
func subtract[K comparable, N int | int64](counts map[K]N, k K, n N) {
	if counts[k] -= n; counts[k] == 0 {
		delete(counts, k)
	}
}

// weight returns the bytes that a delivery of the size counts: none if it is small, and at
// most all the room of the node.
func weight(size int64) int64 {
	if size <= smallDelivery {
		return 0
	}
	return min(size, roomBytes)
}
