package a2a

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/cache"
)

// maxCardCache bounds the cache of agent cards, in bytes.
const maxCardCache = 16 << 20

// agentCards caches cards of agents for a moment, so that each form of a card is read, encoded and
// signed at most once a second. Requests for a card that is being built wait for it.
type agentCards struct {
	kept     *cache.Cache[agentCardKey, keptAgentCard]
	building cache.Flights[agentBuildKey, []byte]
}

func newAgentCards() *agentCards {
	return &agentCards{kept: cache.New(cache.Options[agentCardKey, keptAgentCard]{
		Max: maxCardCache, For: cardFor, Shards: 1,
		Size: func(_ agentCardKey, c keptAgentCard) int64 { return int64(len(c.body)) },
	})}
}

type agentCardKey struct {
	org, id string
	form    cardForm
}

type keptAgentCard struct {
	body    []byte
	updated int64 // when the agent was changed, in ns
}

// agentBuildKey identifies a card of an agent as of its last change: a request that knows of a
// change must not get an older card.
type agentBuildKey struct {
	agentCardKey
	updated int64
}

// get returns the card, or builds it. The build does not end with the request that started it,
// because others wait for it too. They wait no longer than their own requests last.
func (c *agentCards) get(
	ctx context.Context, k agentBuildKey, build func(context.Context) ([]byte, error),
) ([]byte, error) {
	if kept, ok := c.kept.Get(k.agentCardKey); ok && kept.updated == k.updated {
		return kept.body, nil
	}
	flight, first := c.building.Join(k)
	if !first {
		return flight.Wait(ctx)
	}
	defer flight.Abandon() // if build panics
	if kept, ok := c.kept.Get(k.agentCardKey); ok && kept.updated == k.updated {
		flight.Land(kept.body, nil) // another request has built it meanwhile
		return kept.body, nil
	}
	mark := c.kept.Mark(k.agentCardKey)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cardTimeout)
	defer cancel()
	body, err := build(ctx)
	if err == nil {
		c.kept.Put(k.agentCardKey, keptAgentCard{body, k.updated}, mark)
	}
	flight.Land(body, err)
	return body, err
}

// agentCardBody returns the signed card of an agent. It is shared and must not be modified.
func (s *server) agentCardBody(ctx context.Context, a *agent.Agent, f cardForm) ([]byte, error) {
	key := agentBuildKey{agentCardKey{a.Org, a.ID, f}, a.UpdatedAt.UnixNano()}
	return s.cards.get(ctx, key, func(ctx context.Context) ([]byte, error) {
		profile, err := s.Directory.Profile(ctx, a)
		if err != nil {
			return nil, err
		}
		return s.encodeCard(f, func(f cardForm) officialCard { return s.cardOf(a, &profile, f) })
	})
}

// encodeCard encodes one form of a card, with its signatures.
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
