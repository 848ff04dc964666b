package app

import (
	"context"

	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/store"
)

// Compact gives space of deleted rows back; see store.Compact.
func Compact(ctx context.Context, cfg config.Store, full bool, progress func(what string)) (store.Compacted, error) {
	if err := mustExist(cfg); err != nil {
		return store.Compacted{}, err
	}
	return store.Compact(ctx, storeOptions(cfg, store.Options{}), full, progress)
}
