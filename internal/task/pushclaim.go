package task

import (
	"maps"
	"time"
)

// How much one node pushes at once. The sender chooses the receivers, so an org, by the
// senders of its configurations, holds at most its share: receivers that stall delay
// the pushes of their own org only.
const (
	pushSlots       = 64
	pushPerOrg      = 8
	pushPerReceiver = 4
	// Bytes of the tasks that are being pushed, because in form 0.3 each push sends the
	// whole task. Small tasks are not counted: the slots bound them.
	pushBytes       = 64 << 20
	pushBytesPerOrg = 16 << 20
	smallPush       = 64 << 10
)

// PushLoad is what the deliveries of one org hold.
type PushLoad struct {
	Slots int
	Bytes int64
}

// PushClaim asks the store for work, and decides which of it fits. Its maps say what
// this node is at already.
type PushClaim struct {
	Most        int // further deliveries
	PerOrg      int
	PerReceiver int
	Bytes       int64 // of further tasks
	BytesPerOrg int64
	Receivers   map[string]int
	Orgs        map[string]PushLoad // by the sender's org
	Length      time.Duration
}

// newPushClaim has room for everything that one node pushes at once.
func newPushClaim(length time.Duration) PushClaim {
	return PushClaim{
		Most: pushSlots, PerOrg: pushPerOrg, PerReceiver: pushPerReceiver, Bytes: pushBytes, BytesPerOrg: pushBytesPerOrg,
		Receivers: map[string]int{}, Orgs: map[string]PushLoad{}, Length: length,
	}
}

func (c PushClaim) clone() PushClaim {
	c.Receivers, c.Orgs = maps.Clone(c.Receivers), maps.Clone(c.Orgs)
	return c
}

// Room is how many deliveries of an org fit, as far as slots are concerned.
func (c *PushClaim) Room(org string) int { return min(c.Most, c.PerOrg-c.Orgs[org].Slots) }

// Stalls reports whether a receiver is being pushed to as often as it may be.
func (c *PushClaim) Stalls(receiver string) bool { return c.Receivers[receiver] >= c.PerReceiver }

// Take takes the room for a delivery, if there is. An org that pushes nothing else may
// push a task of any size, if it fits with those of the others.
func (c *PushClaim) Take(p *Push) bool {
	receiver, load, size := p.Receiver(), c.Orgs[p.SenderOrg], pushWeight(p.Size)
	if c.Room(p.SenderOrg) <= 0 || c.Stalls(receiver) {
		return false
	}
	if size > 0 && (size > c.Bytes || load.Bytes > 0 && load.Bytes+size > c.BytesPerOrg) {
		return false
	}
	c.Most--
	c.Bytes -= size
	c.Receivers[receiver]++
	c.Orgs[p.SenderOrg] = PushLoad{load.Slots + 1, load.Bytes + size}
	return true
}

// free gives back what Take took.
func (c *PushClaim) free(p *Push) {
	receiver, load, size := p.Receiver(), c.Orgs[p.SenderOrg], pushWeight(p.Size)
	c.Most++
	c.Bytes += size
	if c.Receivers[receiver]--; c.Receivers[receiver] == 0 {
		delete(c.Receivers, receiver)
	}
	if load = (PushLoad{load.Slots - 1, load.Bytes - size}); load.Slots == 0 {
		delete(c.Orgs, p.SenderOrg)
	} else {
		c.Orgs[p.SenderOrg] = load
	}
}

// pushWeight is what a task of the size counts. A task larger than all the room there
// is counts as much as fits.
func pushWeight(size int64) int64 {
	if size <= smallPush {
		return 0
	}
	return min(size, pushBytes)
}
