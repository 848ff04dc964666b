package store

import (
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
)

// IdentityStores returns the stores of package identity.
func (s *Store) IdentityStores() identity.Stores {
	i := s.Identity()
	return identity.Stores{Orgs: i, Members: i, Keys: i, Invitations: i, Audit: s.Audit()}
}

// OAuthStores returns the stores of package oauth.
func (s *Store) OAuthStores() oauth.Stores {
	o := s.OAuth()
	return oauth.Stores{Clients: o, OrgClients: o, Grants: o, Tokens: o}
}

// DispatchStores returns the stores of package dispatch.
func (s *Store) DispatchStores() dispatch.Stores {
	tasks := s.Tasks()
	return dispatch.Stores{
		Read: tasks, Write: tasks, Queue: tasks, Log: tasks, Stock: tasks,
		Workers: s.Workers(), Mailbox: s.Mailbox(), Pushes: s.Pushes(), Keys: s.Identity(),
		Usage: s.Agents(),
	}
}
