package app

import (
	"context"
	"fmt"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/outbound"
	"github.com/parley-dev/parley/internal/relay"
)

// relayTopic starts the hints between nodes that a relay has changed.
const relayTopic = "r:" // + org + "/" + agent

// platformID returns the id by which other platforms of Parley recognize this one. All nodes share
// it; the first one makes it.
func (s *Server) platformID(ctx context.Context, ids *ids) (string, error) {
	id, err := s.store.Secret(ctx, "platform_id", ids.next("p-"))
	if err != nil {
		return "", fmt.Errorf("read the id of the platform: %w", err)
	}
	return id, nil
}

// newRelays makes the engine that relays tasks to remote agents, and the service for their admins.
func (s *Server) newRelays() error {
	guard, err := outbound.New(outbound.Options{Allow: s.cfg.OutboundAllow, Flag: outboundFlag, NoSharing: true})
	if err != nil {
		return err
	}
	s.relays = relay.New(relay.Options{
		Store: s.store.Relays(), Workers: s.tasks.Workers, Agents: agent.NewOperator(s.agents), Keys: s.keys, Guard: guard,
		Platform: s.platform, Version: Version(), Now: Now, Log: s.log,
	})
	s.relayAdmin = relay.NewService(s.relays, s.agents, func(org, id string) {
		s.relays.Changed()
		if s.bus != nil {
			s.bus.Publish(relayTopic + org + "/" + id)
		}
	})
	return nil
}
