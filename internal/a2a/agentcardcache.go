package a2a

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/agent"
)

// maxCardCache bounds the cards of agents that are kept, in bytes.
const maxCardCache = 16 << 20

// agentCards keeps cards of agents for a moment, so that a card is read, encoded and
// signed once a second at most in each of its forms.
type agentCards struct {
	mu    sync.Mutex
	cards map[agentCardKey]keptAgentCard
	size  int
}

type agentCardKey struct {
	org, id string
	form    cardForm
}

type keptAgentCard struct {
	body    []byte
	updated time.Time // of the agent
	at      time.Time
}

func (c *agentCards) get(k agentCardKey, updated time.Time) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept, ok := c.cards[k]
	return kept.body, ok && kept.updated.Equal(updated) && time.Since(kept.at) < cardFor
}

func (c *agentCards) put(k agentCardKey, kept keptAgentCard) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size += len(kept.body) - len(c.cards[k].body)
	if c.cards == nil || c.size > maxCardCache {
		c.cards, c.size = map[agentCardKey]keptAgentCard{}, len(kept.body)
	}
	c.cards[k] = kept
}

// agentCardBody is the card of an agent, signed. It is shared and must not be changed.
func (s *server) agentCardBody(ctx context.Context, a *agent.Agent, f cardForm) ([]byte, error) {
	key := agentCardKey{a.Org, a.ID, f}
	if body, ok := s.cards.get(key, a.UpdatedAt); ok {
		return body, nil
	}
	now := time.Now()
	profile, err := s.Agents.Profile(ctx, a)
	if err != nil {
		return nil, err
	}
	body, err := s.encodeCard(f, func(f cardForm) officialCard { return s.cardOf(a, &profile, f) })
	if err != nil {
		return nil, err
	}
	s.cards.put(key, keptAgentCard{body, a.UpdatedAt, now})
	return body, nil
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
