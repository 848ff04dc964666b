package a2a

import (
	"context"
	"sync"
	"time"
)

// builtCard is a page of the card, ready to be sent. It is shared and never changed.
type builtCard struct {
	body     []byte
	tag      string
	modified time.Time
}

// cardEntry is an agent on the card.
type cardEntry struct {
	id, org string
	json    []byte
}

// cardPart is some of the agents of a card.
type cardPart struct {
	entries []cardEntry
	size    int    // of their JSON
	next    string // cursor of the next page; empty: there is none
}

func (p *cardPart) add(e cardEntry) {
	p.entries = append(p.entries, e)
	p.size += len(e.json)
}

// publicPage is a page that everybody sees, with its entries for the pages of callers.
type publicPage struct {
	cardPart
	built builtCard
}

const (
	cardFor     = time.Second      // how long a page for everybody is kept
	cardTimeout = 10 * time.Second // to build one
	maxPages    = 16
)

// cardCache keeps pages for a moment. One page is built at a time, and whoever asks for
// it meanwhile gets the same bytes.
type cardCache struct {
	mu    sync.Mutex
	pages map[string]keptCard
}

type keptCard struct {
	publicPage
	at time.Time
}

// get returns the page, or builds it. The build does not end with the request that
// started it: others wait for it, too.
func (c *cardCache) get(ctx context.Context, key string, build func(context.Context) (publicPage, error)) (publicPage, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if kept, ok := c.pages[key]; ok && time.Since(kept.at) < cardFor {
		return kept.publicPage, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cardTimeout)
	defer cancel()
	built, err := build(ctx)
	if err != nil {
		return publicPage{}, err
	}
	if c.pages == nil || len(c.pages) >= maxPages {
		c.pages = map[string]keptCard{}
	}
	c.pages[key] = keptCard{built, time.Now()}
	return built, nil
}
