package store

import "github.com/parley-dev/parley/internal/dispatch"

// Dispatch is where package dispatch keeps things.
func (s *Store) Dispatch() dispatch.Stores {
	tasks := s.Tasks()
	return dispatch.Stores{
		Read: tasks, Write: tasks, Queue: tasks, Log: tasks, Stock: tasks,
		Workers: s.Workers(), Mailbox: s.Mailbox(), Pushes: s.Pushes(), Deliveries: s.Deliveries(), Keys: s.Identity(),
	}
}
