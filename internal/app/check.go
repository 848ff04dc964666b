package app

import (
	"context"

	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/store"
)

// Checked is the outcome of Check.
type Checked struct {
	Engine   string
	Schema   int
	Findings []store.Finding // that remain
	Repaired int64           // numbers that were wrong
}

// Check looks for damage in a store, which servers may use meanwhile. With repair it computes numbers
// again that can be computed from rows, and then looks again.
func Check(ctx context.Context, cfg config.Store, repair bool, progress func(check string)) (Checked, error) {
	out, err := checkOnce(ctx, cfg, progress)
	if err != nil || !repair {
		return out, err
	}
	for _, f := range out.Findings {
		if f.Repairable {
			n, err := store.Repair(ctx, storeOptions(cfg, store.Options{}))
			if err != nil {
				return out, err
			}
			out, err = checkOnce(ctx, cfg, progress)
			out.Repaired = n
			return out, err
		}
	}
	return out, nil
}

func checkOnce(ctx context.Context, cfg config.Store, progress func(check string)) (Checked, error) {
	s, err := store.OpenSnapshot(ctx, storeOptions(cfg, store.Options{}))
	if err != nil {
		return Checked{}, err
	}
	defer func() { _ = s.Close() }()
	out := Checked{Engine: s.Engine, Schema: s.Schema}
	out.Findings, err = s.Check(ctx, progress)
	return out, err
}
