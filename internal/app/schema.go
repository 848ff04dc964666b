package app

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/store"
)

// schemaPoll is the interval in which a node registers itself and checks the schema version.
const schemaPoll = time.Second

// nodeName returns a name for this process that is unique among those that share a database.
func nodeName(ids *ids) string {
	node := ids.next("node-")
	if host, err := os.Hostname(); err == nil {
		node = host + "-" + node
	}
	return node
}

// holder describes this process in the lock file of the data folder.
func holder() string { return fmt.Sprintf("process %d, parley %s", os.Getpid(), Version()) }

// watchSchema keeps this node registered. It logs once that a newer program has migrated the
// store. After an incompatible migration it ends: the store refuses every use, and /readyz
// returns the reason.
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
			s.tasks.Stop() // waiting clients should retry on another node
			s.endWork()    // background work would only fail
			return
		case err != nil && ctx.Err() == nil && Now().Sub(logged) > quiet:
			logged = Now()
			s.log.Error("this node cannot tell the others that it is alive", "error", err)
		case len(newer) > known:
			known = len(newer)
			s.log.Info("a newer parley has migrated the store; this version can keep running", "schema", newer[known-1].Number)
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
