package a2a

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/agent"
)

// maxCardCache bounds the cards of agents that are kept, in bytes.
const maxCardCache = 16 << 20

// agentCards keeps cards of agents for a moment, so that a card is read, encoded and
// signed once a second at most in each of its forms. Requests for a card that is being
// built wait for it.
type agentCards struct {
	mu       sync.Mutex
	cards    map[agentCardKey]keptAgentCard
	size     int
	building map[agentBuildKey]*agentBuild
}

type agentCardKey struct {
	org, id string
	form    cardForm
}

type keptAgentCard struct {
	body    []byte
	updated int64 // when the agent was changed, in ns
	at      time.Time
}

// agentBuildKey names a card of an agent as it was after its last change: a request that
// knows of a change must not get the card from before.
type agentBuildKey struct {
	agentCardKey
	updated int64
}

// agentBuild is a card that is being built. Its results may be read once done is closed.
type agentBuild struct {
	done chan struct{}
	body []byte
	err  error
}

var errNotBuilt = errors.New("a2a: building the card ended early")

// get returns the card, or builds it. The build does not end with the request that started
// it, because others wait for it, too. They wait no longer than their own requests last.
func (c *agentCards) get(ctx context.Context, k agentBuildKey, build func(context.Context) ([]byte, error)) ([]byte, error) {
	c.mu.Lock()
	if kept, ok := c.cards[k.agentCardKey]; ok && kept.updated == k.updated && time.Since(kept.at) < cardFor {
		c.mu.Unlock()
		return kept.body, nil
	}
	b, running := c.building[k]
	if !running {
		b = &agentBuild{done: make(chan struct{}), err: errNotBuilt}
		if c.building == nil {
			c.building = map[agentBuildKey]*agentBuild{}
		}
		c.building[k] = b
	}
	c.mu.Unlock()
	if running {
		select {
		case <-b.done:
			return b.body, b.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	began := time.Now()
	defer func() { c.finish(k, b, began) }() // also if build panics
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cardTimeout)
	defer cancel()
	b.body, b.err = build(ctx)
	return b.body, b.err
}

// finish keeps a card that was built and lets those go on that wait for it.
func (c *agentCards) finish(k agentBuildKey, b *agentBuild, began time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.building, k)
	close(b.done)
	if b.err != nil {
		return
	}
	c.size += len(b.body) - len(c.cards[k.agentCardKey].body)
	if c.cards == nil || c.size > maxCardCache {
		c.cards, c.size = map[agentCardKey]keptAgentCard{}, len(b.body)
	}
	c.cards[k.agentCardKey] = keptAgentCard{b.body, k.updated, began}
}

// agentCardBody is the card of an agent, signed. It is shared and must not be changed.
func (s *server) agentCardBody(ctx context.Context, a *agent.Agent, f cardForm) ([]byte, error) {
	key := agentBuildKey{agentCardKey{a.Org, a.ID, f}, a.UpdatedAt.UnixNano()}
	return s.cards.get(ctx, key, func(ctx context.Context) ([]byte, error) {
		profile, err := s.Agents.Profile(ctx, a)
		if err != nil {
			return nil, err
		}
		return s.encodeCard(f, func(f cardForm) officialCard { return s.cardOf(a, &profile, f) })
	})
}

// encodeCard encodes a card in one of its forms, with its signatures.
func (s *server) encodeCard(f cardForm, of func(cardForm) officialCard) ([]byte, error) {
	card := of(f)
	if s.signer != nil {
		var err error
		if card.Signatures, err = s.signer.signatures(of, f); err != nil {
			return nil, err
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(card); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
