package delivery

import "time"

// Pace selects a lane. Deliveries share the slots of a node in two lanes, so that receivers that
// fail, stall or respond slowly do not take the slots of those that work.
type Pace int

// The lanes. A delivery begins in the fast lane, unless its last attempt failed or was slow. If an
// attempt takes longer than slowAfter, it moves to the slow lane.
const (
	Fast Pace = iota
	Slow
)

// Limits of one node. The owner of a subscription chooses the receiver, so each owner (an
// org) gets a limited share: slow receivers delay the deliveries of their own org only.
const (
	fastSlots, fastPerOrg = 64, 8
	slowSlots, slowPerOrg = 192, 16
	// fastReserve is the part of the fast lane for orgs that have nothing in the slow lane.
	fastReserve = 16

	perReceiver = 4 // of one org, in each lane; see Room.atOnce
	// slowExcess is how far the slow lane may exceed its slots by attempts that began in the fast one.
	slowExcess = 128
	slowAfter  = time.Second
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
	Reserve     int            // slots for owners that have nothing in the slow lane
	Orgs        map[string]int // in flight, by owner
	Receivers   map[Target]int // in flight, by receiver
}

// Room is the capacity that a node has left. The store asks it which subscriptions fit.
type Room struct {
	Lanes       [2]Lane // by Pace
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

// Free returns how many further deliveries fit into both lanes.
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
func (r *Room) InUse(owner string) int { return r.Lanes[Fast].Orgs[owner] + r.Lanes[Slow].Orgs[owner] }

// Left returns how many further deliveries of an owner fit into a lane. An owner may hold at most as
// many slots as half of those that are free, so the last slots remain for those who have none.
func (r *Room) Left(p Pace, owner string) int {
	l := &r.Lanes[p]
	free := l.Free
	if r.Lanes[Slow].Orgs[owner] > 0 {
		free -= l.Reserve
	}
	return min(free, min(l.PerOrg, max(1, l.Free/2))-l.Orgs[owner])
}

// Full returns the receivers of an owner that already have as many requests in flight as a lane
// allows.
func (r *Room) Full(p Pace, owner string) (receivers []string) {
	for t, n := range r.Lanes[p].Receivers {
		if t.Owner == owner && n >= r.atOnce(p, t) {
			receivers = append(receivers, t.Receiver)
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
func (r *Room) Suspect(t Target) bool { return r.Lanes[Slow].Receivers[t] > 0 }

// Suspects returns the receivers of an owner that are suspect.
func (r *Room) Suspects(owner string) (receivers []string) {
	for t := range r.Lanes[Slow].Receivers {
		if t.Owner == owner {
			receivers = append(receivers, t.Receiver)
		}
	}
	return receivers
}

// atOnce returns how many requests a receiver may have in flight in a lane. A suspect one gets
// subscriptions that are not known to be slow one at a time, so that they do not fill the fast lane
// again and again.
func (r *Room) atOnce(p Pace, t Target) int {
	if p == Fast && r.Suspect(t) {
		return 1
	}
	return r.Lanes[p].PerReceiver
}

// leave gives back a slot of a lane.
func (r *Room) leave(p Pace, t Target) {
	l := &r.Lanes[p]
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
