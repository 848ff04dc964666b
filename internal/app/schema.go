package app

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/store"
)

// schemaPoll is how often a server says that it is alive, and looks whether the schema
// moved on.
const schemaPoll = time.Second

// nodeName names this process among those that share a database.
func nodeName(ids *ids) string {
	node := ids.next("node-")
	if host, err := os.Hostname(); err == nil {
		node = host + "-" + node
	}
	return node
}

// holder describes this process in the lock file of the data folder.
func holder() string { return fmt.Sprintf("process %d, parley %s", os.Getpid(), Version()) }

// watchSchema keeps this node registered, and logs once that a newer program has
// migrated the store. After an incompatible migration nothing is left to do: the store
// refuses every use, and /readyz says why.
func (s *Server) watchSchema(ctx context.Context) {
	tick := time.NewTicker(schemaPoll)
	defer tick.Stop()
	known := len(s.store.Migrated().Ahead)
	var logged time.Time
	for {
		newer, err := s.beat(ctx)
		switch {
		case err != nil && errs.As(err).Code == store.CodeMigrated:
			s.log.Error("this node is out of service", "error", err)
			s.tasks.Stop() // whoever waits for something is to ask another node
			s.endWork()    // all of it would fail from now on
			return
		case err != nil && ctx.Err() == nil && Now().Sub(logged) > quiet:
			logged = Now()
			s.log.Error("this node cannot tell the others that it is alive", "error", err)
		case len(newer) > known:
			known = len(newer)
			s.log.Info("a newer parley has migrated the store; this version may go on", "schema", newer[known-1].Number)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (s *Server) beat(ctx context.Context) ([]store.Step, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return s.store.Beat(ctx)
}
