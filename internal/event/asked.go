package event

import (
	"sync"
	"time"
)

// askedOrgs remembers the orgs whose logs are asked for pages by subject. Only these are indexed: the index
// costs a few writes per event, and most logs are only read in order.
type askedOrgs struct {
	now  func() time.Time
	wake chan struct{} // buffered; gets a value for each new org

	mu sync.Mutex
	at map[string]time.Time // of the last request
}

const (
	maxAsked = 1000      // orgs
	askedFor = time.Hour // since the last request
)

func newAskedOrgs(now func() time.Time) *askedOrgs {
	return &askedOrgs{now: now, wake: make(chan struct{}, 1), at: map[string]time.Time{}}
}

// add notes a request. If there are too many orgs, a new one is not indexed until others are
// forgotten; its log is searched all the same.
func (a *askedOrgs) add(org string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, known := a.at[org]
	if !known && len(a.at) >= maxAsked {
		return
	}
	a.at[org] = a.now()
	if known {
		return
	}
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// list returns the orgs, and forgets those that were not asked for long.
func (a *askedOrgs) list() (orgs []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	oldest := a.now().Add(-askedFor)
	for org, at := range a.at {
		if at.Before(oldest) {
			delete(a.at, org)
			continue
		}
		orgs = append(orgs, org)
	}
	return orgs
}
