package app

import (
	"context"
	"log/slog"

	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/doctor"
	"github.com/parley-dev/parley/internal/store"
)

// Doctor checks the settings and the surroundings of a server. It starts none.
func Doctor(ctx context.Context, cfg config.Config, progress func(check string)) []doctor.Finding {
	quiet := slog.New(slog.DiscardHandler)
	return doctor.Run(ctx, doctor.Options{
		Config: cfg, Store: storeOptions(cfg.Store, store.Options{Log: quiet}), Files: maxFiles(), Now: Now, Log: quiet,
	}, progress)
}
