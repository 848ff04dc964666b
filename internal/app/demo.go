package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/demo"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/store"
	"github.com/parley-dev/parley/internal/webhook"
)

// RunDemo is Run on an empty store that it fills with the company of package demo. With temporary,
// that store is a new folder, which is removed at the end.
func RunDemo(ctx context.Context, cfg config.Config, temporary bool, out Output) error {
	if err := checkDemo(&cfg); err != nil {
		return err
	}
	if temporary {
		dir, err := os.MkdirTemp("", "parley-demo-")
		if err != nil {
			return fmt.Errorf("cannot make a folder for the demo; name one with --data: %w", err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		cfg.Data, cfg.Database = dir, ""
	} else if err := refuseUsed(ctx, cfg.Store); err != nil {
		return err
	}
	receiver, err := demo.NewReceiver(ctx)
	if err != nil {
		return fmt.Errorf("cannot receive the webhooks of the demo: %w", err)
	}
	defer receiver.Close()
	go receiver.Serve()
	cfg.OutboundAllow = append(cfg.OutboundAllow, receiver.Address())
	cfg.EchoAgent = false // the company has agents
	return run(ctx, cfg, out, &stage{receiver: receiver, temporary: temporary})
}

// checkDemo refuses settings that do not fit the demo.
func checkDemo(cfg *config.Config) error {
	const history = demo.Age + 24*time.Hour
	switch {
	case cfg.Issuers != "":
		return errors.New("--demo and --issuers exclude each other: the org of the demo has no identity provider; " +
			"leave out one of them")
	}
	for _, r := range []struct {
		what string
		keep time.Duration
	}{
		{"task", cfg.TaskRetention}, {"event", cfg.EventRetention}, {"friction", cfg.FrictionRetention},
	} {
		if r.keep > 0 && r.keep < history {
			return fmt.Errorf("--%s-retention %s would delete records of the demo, which has a history of %d days; "+
				"leave it out", r.what, r.keep, demo.Age/(24*time.Hour))
		}
	}
	return nil
}

// refuseUsed returns an error if the store has an org. It neither migrates the store nor makes this
// process one of its nodes, so that a store that is refused does not change.
func refuseUsed(ctx context.Context, cfg config.Store) (err error) {
	if _, err := os.Stat(cfg.Data); cfg.Database == "" && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	s, err := openStore(ctx, cfg, store.Options{Migrate: store.MigrateNever})
	if err != nil {
		return fmt.Errorf("--demo needs an empty store: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	orgs, err := s.Identity().Orgs(ctx)
	if err != nil || len(orgs) == 0 {
		return err
	}
	keys, err := s.Identity().Keys(ctx, orgs[0].ID, identity.KeyFilter{})
	switch {
	case err != nil:
		return err
	case len(orgs) == 1 && demo.Unfinished(orgs[0], keys):
		return errUnfinished(cfg)
	}
	return errUsed(cfg)
}

func errUsed(cfg config.Store) error {
	return fmt.Errorf("--demo needs an empty store, and %s has an org; leave out --data and --database for a store that "+
		"is removed at the end, or name an empty one", StoreName(cfg))
}

// errUnfinished is the error for a store with a part of a demo, whose key was never printed.
func errUnfinished(cfg config.Store) error {
	next := "delete this folder, or name another one with --data"
	if cfg.Database != "" {
		next = "empty this database, or name another one with --database"
	}
	return fmt.Errorf("%s has a part of a demo whose start was interrupted; %s, and start the demo again",
		StoreName(cfg), next)
}

// stage is what a server with a demo has besides.
type stage struct {
	receiver  *demo.Receiver
	temporary bool
	company   *demo.Company
}

// bootstrap creates the first org. With a demo it is the company.
func (s *Server) bootstrap(ctx context.Context, ids *ids) (err error) {
	if s.stage == nil {
		s.first, err = identity.NewOperator(s.store.IdentityStores(), Now, ids.next).Bootstrap(ctx)
		return err
	}
	now := Now()
	clock := demo.NewClock(now.Add(-demo.Age))
	past := newIDs(clock.Now)
	s.first, err = identity.NewOperator(s.store.IdentityStores(), clock.Now, past.next).Found(ctx, demo.Founding)
	if err != nil {
		return err
	}
	if s.first == nil {
		return errUsed(s.cfg.Store)
	}
	onError := func(err error) { s.log.Warn("an agent of the demo failed", "error", err) }
	s.stage.company = demo.NewCompany(s.demoServices(Now, ids, s.tasks, s.agents), Now, onError)
	directory := agent.NewDirectory(s.store.Agents(), clock.Now)
	registry := agent.NewRegistry(s.store.Agents(), directory, agent.Quotas{}, clock.Now)
	err = demo.Seed(ctx, demo.SeedOptions{
		Services: s.demoServices(clock.Now, past, s.pastTasks(clock, past, directory), registry),
		Clock:    clock, Now: now, Receiver: "http://" + s.stage.receiver.Address(),
		Touch: s.store.Identity().TouchKeys,
	})
	if err != nil && !s.stage.temporary {
		err = fmt.Errorf("%w; %w", err, errUnfinished(s.cfg.Store))
	}
	return err
}

// pastTasks returns a service for the tasks of the past. It runs no background work.
func (s *Server) pastTasks(clock *demo.Clock, ids *ids, directory *agent.Directory) *dispatch.Service {
	o := dispatch.Options{
		Stores: s.store.DispatchStores(), Directory: dispatch.AgentDirectory(directory), Now: clock.Now, NewID: ids.next,
		Node: s.node, OnError: func(err error) { s.log.Warn("a task of the demo failed", "error", err) },
		Deliveries: s.deliveries,
	}
	if s.pusher != nil {
		o.CheckPushURL = s.pusher.CheckURL
	}
	return dispatch.New(o)
}

// demoServices returns the services of the company with a clock.
func (s *Server) demoServices(
	now func() time.Time, ids *ids, tasks *dispatch.Service, agents *agent.Registry,
) demo.Services {
	return demo.Services{
		OrgAdmin: identity.NewOrgAdmin(identity.OrgAdminOptions{
			Stores: s.store.IdentityStores(), Agents: s.directory, Now: now, NewID: ids.next,
		}),
		Agents:    agents,
		Proposals: proposal.New(s.store.Proposals(), now, ids.next),
		Followups: followup.New(s.store.Followups(), s.store.Identity(), now, ids.next, sender{tasks.Tasks, ids}),
		Frictions: friction.New(s.store.Friction(), now, ids.next, proposal.Check),
		Tasks:     tasks.Tasks, Workers: tasks.Workers,
		Webhooks: webhook.NewService(webhook.Options{
			Store: s.store.Webhooks(), Log: s.store.Events(), Sender: s.hookSender, CheckURL: s.hookSender.CheckURL,
			Now: now, NewID: ids.next, Base: s.base(),
			OnError: func(err error) { s.log.Warn("a webhook of the demo failed", "error", err) },
		}),
	}
}
