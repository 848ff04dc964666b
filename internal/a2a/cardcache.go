package a2a

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/cache"
)

// builtCard is an encoded page of the card. It is shared and never modified.
type builtCard struct {
	body     []byte
	tag      string
	modified time.Time
}

// cardEntry is an agent on the card.
type cardEntry struct {
	id, org string
	json    []byte
	agent   *agent.Agent // without its profile
}

// cardPart is a part of the agents of a card.
type cardPart struct {
	entries []cardEntry
	size    int    // bytes of JSON
	next    string // cursor of the next page; empty: none
}

func (p *cardPart) add(e cardEntry) {
	p.entries = append(p.entries, e)
	p.size += len(e.json)
}

// publicPage is a public page, with its entries for the pages of callers.
type publicPage struct {
	cardPart
	built builtCard
}

const (
	cardFor     = time.Second      // how long a public page is kept
	cardTimeout = 10 * time.Second // to build one page
	maxPages    = 16
)

// cardCache caches pages for a moment. One page is built at a time; requests for it in the meantime
// get the same bytes.
type cardCache struct {
	turn  chan struct{} // to build; holds at most one value
	pages *cache.Cache[string, publicPage]
}

func newCardCache() *cardCache {
	return &cardCache{
		turn:  make(chan struct{}, 1),
		pages: cache.New(cache.Options[string, publicPage]{Max: maxPages, For: cardFor, Shards: 1}),
	}
}

// get returns the page, or builds it. The build does not end with the request that started it:
// others wait for it too. They wait no longer than their own requests last.
func (c *cardCache) get(
	ctx context.Context, key string, build func(context.Context) (publicPage, error),
) (publicPage, error) {
	if page, ok := c.pages.Get(key); ok {
		return page, nil
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return publicPage{}, ctx.Err()
	}
	if page, ok := c.pages.Get(key); ok {
		return page, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cardTimeout)
	defer cancel()
	built, err := build(ctx)
	if err != nil {
		return publicPage{}, err
	}
	c.pages.Set(key, built)
	return built, nil
}

// cardStats adds up the caches of the platform's cards.
func (s *server) cardStats() (out cache.Stats) {
	for _, c := range []*cardCache{s.firstPage, s.laterPages, s.roots} {
		one := c.pages.Stats()
		out.Hits += one.Hits
		out.Misses += one.Misses
	}
	return out
}
