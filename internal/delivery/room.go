package delivery

import (
	"maps"
	"time"
)

// How much one node delivers at once. The owners choose the receivers, so each owner, an
// org, holds at most its share: receivers that stall delay the deliveries of their own org
// only.
const (
	slots       = 64
	perOrg      = 8
	perReceiver = 4
	// Bytes of what is being sent. Small deliveries are not counted: the slots bound them.
	roomBytes       = 64 << 20
	roomBytesPerOrg = 16 << 20
	smallDelivery   = 64 << 10
)

// Load is what the deliveries of one org hold.
type Load struct {
	Slots int
	Bytes int64
}

// Room is how much further work a node can take, and decides which work fits. Its maps say
// what the node is at already.
type Room struct {
	Most        int // further deliveries
	PerOrg      int
	PerReceiver int
	Bytes       int64 // of further deliveries
	BytesPerOrg int64
	Receivers   map[string]int
	Orgs        map[string]Load // by owner
	Claim       time.Duration   // how long a claim lasts
}

// newRoom has room for everything that one node delivers at once.
func newRoom(claim time.Duration) Room {
	return Room{
		Most: slots, PerOrg: perOrg, PerReceiver: perReceiver, Bytes: roomBytes, BytesPerOrg: roomBytesPerOrg,
		Receivers: map[string]int{}, Orgs: map[string]Load{}, Claim: claim,
	}
}

func (r Room) clone() Room {
	r.Receivers, r.Orgs = maps.Clone(r.Receivers), maps.Clone(r.Orgs)
	return r
}

// Left is how many deliveries of an org fit, as far as slots are concerned.
func (r *Room) Left(org string) int { return min(r.Most, r.PerOrg-r.Orgs[org].Slots) }

// Stalls reports whether a receiver is being sent to as often as it may be.
func (r *Room) Stalls(receiver string) bool { return r.Receivers[receiver] >= r.PerReceiver }

// Take takes the room for a delivery, if there is. An org that delivers nothing else may
// send anything, if it fits with what others send.
func (r *Room) Take(owner, receiver string, size int64) bool {
	load, size := r.Orgs[owner], weight(size)
	if r.Left(owner) <= 0 || r.Stalls(receiver) {
		return false
	}
	if size > 0 && (size > r.Bytes || load.Bytes > 0 && load.Bytes+size > r.BytesPerOrg) {
		return false
	}
	r.Most--
	r.Bytes -= size
	r.Receivers[receiver]++
	r.Orgs[owner] = Load{load.Slots + 1, load.Bytes + size}
	return true
}

// free gives back what Take took.
func (r *Room) free(owner, receiver string, size int64) {
	load, size := r.Orgs[owner], weight(size)
	r.Most++
	r.Bytes += size
	if r.Receivers[receiver]--; r.Receivers[receiver] == 0 {
		delete(r.Receivers, receiver)
	}
	if load = (Load{load.Slots - 1, load.Bytes - size}); load.Slots == 0 {
		delete(r.Orgs, owner)
	} else {
		r.Orgs[owner] = load
	}
}

// weight is what a delivery of the size counts. One larger than all the room there is
// counts as much as fits.
func weight(size int64) int64 {
	if size <= smallDelivery {
		return 0
	}
	return min(size, roomBytes)
}
