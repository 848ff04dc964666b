package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/parley-dev/parley/internal/telemetry"
	"github.com/parley-dev/parley/internal/trace"
)

// startTraces exports spans if the environment asks for it. Log lines then have the ids of the trace.
func (s *Server) startTraces(ctx context.Context) (err error) {
	s.traces, err = telemetry.Start(ctx, Version(), s.node, s.log)
	if err != nil || s.traces == nil {
		return err
	}
	s.tracer = s.traces.Tracer
	s.log = slog.New(tracedHandler{s.log.Handler()})
	return nil
}

// flushWithin is how long the server waits at its end for the collector of spans.
const flushWithin = 5 * time.Second

func (s *Server) stopTraces() {
	ctx, cancel := context.WithTimeout(context.Background(), flushWithin)
	defer cancel()
	if err := s.traces.Close(ctx); err != nil {
		s.log.Warn("the last spans could not be exported", "error", err)
	}
}

// tracedHandler adds the ids of the trace and the span to lines about a request.
type tracedHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h tracedHandler) Handle(ctx context.Context, r slog.Record) error {
	if id, span := trace.IDs(ctx); id != "" {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", id), slog.String("span_id", span))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h tracedHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return tracedHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h tracedHandler) WithGroup(name string) slog.Handler {
	return tracedHandler{h.Handler.WithGroup(name)}
}
