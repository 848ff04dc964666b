package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"
)

// side is a separate address of the server, for its operator, over plain HTTP.
type side struct {
	name     string // what it serves
	path     string
	listener net.Listener
	http     *http.Server
}

// openSide listens on the address of a flag. Without an address there is no side.
func (s *Server) openSide(ctx context.Context, addr, flag, name, path string) (*side, error) {
	if addr == "" {
		return nil, nil
	}
	l, err := listen(ctx, addr, flag)
	if err != nil {
		return nil, err
	}
	d := &side{name: name, path: path, listener: l, http: &http.Server{
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}}
	s.sides = append(s.sides, d)
	return d, nil
}

func (d *side) url() string { return "http://" + d.listener.Addr().String() + d.path }

// close also ends running requests, which the operator repeats.
func (d *side) close() {
	_ = d.http.Close()
	_ = d.listener.Close()
}

func (s *Server) serveSide(d *side) {
	if err := d.http.Serve(d.listener); !errors.Is(err, http.ErrServerClosed) {
		s.failed <- fmt.Errorf("the server stopped serving %s: %w", d.name, err)
	}
}

// maxProfile is how long a profile or a trace may take.
const maxProfile = 10 * time.Minute

// mountDebug serves the profiles of the Go runtime.
func mountDebug(d *side) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.Handle("GET /debug/pprof/cmdline", http.NotFoundHandler()) // flags may have a password
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	d.http.Handler, d.http.WriteTimeout = byAddress(mux), maxProfile
}

// byAddress refuses requests under a host name, which a page in a browser could have pointed here.
func byAddress(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if host != "localhost" && net.ParseIP(strings.Trim(host, "[]")) == nil {
			http.Error(w, "use the IP address or localhost", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
