package app

import (
	"io"
	"log/slog"

	"github.com/parley-dev/parley/internal/config"
)

// NewLogger returns the program's logger. Secrets must never be logged: a new key is printed
// once, on stdout.
func NewLogger(w io.Writer, cfg config.Config) (*slog.Logger, error) {
	level, err := cfg.Level()
	if err != nil {
		return nil, err
	}
	opts := &slog.HandlerOptions{Level: level}
	if cfg.LogFormat == "json" {
		return slog.New(newBoundedHandler(slog.NewJSONHandler(w, opts), Now)), nil
	}
	return slog.New(newBoundedHandler(slog.NewTextHandler(w, opts), Now)), nil
}
