package app

import (
	"github.com/parley-dev/parley/internal/event"
)

// eventTopic starts the hints between nodes that the log of an org has grown.
const eventTopic = "e:" // + org

// newEvents makes the service for the readers of events. It is told of every event that this node
// writes, and tells the other nodes.
func (s *Server) newEvents() {
	s.events = event.NewService(event.Options{
		Store: s.store.Events(), Now: Now, Stopping: s.tasks.Stopping(),
		OnError: func(err error) { s.log.Error("background work on events failed", "error", err) },
	})
	s.store.OnEvents(func(org string) {
		s.events.Changed(org)
		s.webhooks.Changed(org)
		if s.bus != nil {
			s.bus.Publish(eventTopic + org)
		}
	})
}
