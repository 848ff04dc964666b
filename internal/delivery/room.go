package delivery

import "time"

// Limits of one node. The owner of a subscription chooses the receiver, so each owner (an
// org) gets a limited share: slow receivers delay the deliveries of their own org only.
const (
	slots       = 64
	perOrg      = 8
	perReceiver = 4
	// Bytes of the requests in flight. Small requests are not counted; the slots limit them.
	roomBytes       = 64 << 20
	roomBytesPerOrg = 16 << 20
	smallDelivery   = 64 << 10
)

// Load is the room that the deliveries of one org use.
type Load struct {
	Slots int
	Bytes int64
}

// Room is the capacity that a node has left. The store asks it which subscriptions fit.
type Room struct {
	Most        int // further deliveries
	PerOrg      int
	PerReceiver int
	Bytes       int64 // of further deliveries
	BytesPerOrg int64
	Receivers   map[string]int  // requests in flight, by receiver
	Orgs        map[string]Load // load, by owner
	Claim       time.Duration   // the length of a claim
}

// Left returns how many further deliveries of an owner fit, as far as slots are concerned.
func (r *Room) Left(owner string) int { return min(r.Most, r.PerOrg-r.Orgs[owner].Slots) }

// Full reports whether a receiver already has as many requests in flight as it may have.
func (r *Room) Full(receiver string) bool { return r.Receivers[receiver] >= r.PerReceiver }

// Take takes the room for a delivery and reports whether it fits. held is the number of
// bytes that it counts. An org without other deliveries may exceed its share of bytes.
func (r *Room) Take(owner, receiver string, size int64) (held int64, fits bool) {
	load, size := r.Orgs[owner], weight(size)
	if r.Left(owner) <= 0 || r.Full(receiver) {
		return 0, false
	}
	if size > 0 && (size > r.Bytes || load.Bytes > 0 && load.Bytes+size > r.BytesPerOrg) {
		return 0, false
	}
	r.Most--
	r.Bytes -= size
	r.Receivers[receiver]++
	r.Orgs[owner] = Load{load.Slots + 1, load.Bytes + size}
	return size, true
}

// weight returns the bytes that a delivery of the size counts: none if it is small, and at
// most all the room of the node.
func weight(size int64) int64 {
	if size <= smallDelivery {
		return 0
	}
	return min(size, roomBytes)
}
