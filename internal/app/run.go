package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"

	"github.com/parley-dev/parley/internal/config"
)

// Output is where a server says things: greetings, with the first key, on stdout;
// the log on stderr.
type Output struct {
	Stdout io.Writer
	Stderr io.Writer
	JSON   bool // greet with a JSON object
}

// Run serves until ctx ends, then shuts down.
func Run(ctx context.Context, cfg config.Config, out Output) error {
	log, err := NewLogger(out.Stderr, cfg)
	if err != nil {
		return err
	}
	s, err := New(ctx, cfg, log)
	if err != nil {
		return err
	}
	for _, name := range config.UnknownEnv(os.Environ()) {
		log.Warn("an environment variable looks like a setting and is none", "name", name)
	}
	s.warnIfExposed()
	s.warnOfAddress()
	limitMemory(log)
	tuneCollector()
	s.Start()
	if err := s.greet(out); err != nil {
		log.Error("could not print the address; if a first key was lost with it, make one with: parley key create", "error", err)
	}
	log.Info("serving", "address", s.URL(), "store", s.store.Engine(), "version", Version())
	if s.metricsListener != nil {
		log.Info("serving metrics", "address", "http://"+s.metricsListener.Addr().String()+"/metrics")
	}
	select {
	case <-ctx.Done():
		log.Info("stopping", "timeout", cfg.ShutdownTimeout.String())
	case err = <-s.failed:
	}
	if serr := s.Shutdown(); err == nil {
		err = serr
	}
	if err == nil {
		log.Info("stopped")
	}
	return err
}

// warnIfExposed points out that keys would travel in clear.
func (s *Server) warnIfExposed() {
	addr, ok := s.listener.Addr().(*net.TCPAddr)
	if ok && addr.IP.IsLoopback() || s.cfg.TLS() || strings.HasPrefix(s.cfg.PublicURL, "https://") {
		return
	}
	s.log.Warn("other machines can reach this server without TLS, so keys travel in clear; "+
		"use --tls-cert and --tls-key, or put a TLS proxy in front and name it with --public-url https://…",
		slog.String("address", s.listener.Addr().String()))
}

// warnOfAddress points out that cards and links name an address that other machines
// cannot use: they are never made of what a request says.
func (s *Server) warnOfAddress() {
	addr, ok := s.listener.Addr().(*net.TCPAddr)
	if !ok || addr.IP.IsLoopback() || s.cfg.PublicURL != "" {
		return
	}
	s.log.Warn("cards of agents, links and the OAuth issuer name the address that the server listens on; "+
		"name the one by which others reach it with --public-url", slog.String("address", s.base()))
}

// greeting is what a server says when it is up.
type greeting struct {
	Address   string `json:"address"`
	PublicURL string `json:"public_url,omitempty"`
	Org       string `json:"org,omitempty"`
	User      string `json:"user,omitempty"`
	Key       string `json:"key,omitempty"`
	Curl      string `json:"curl,omitempty"`
	Link      string `json:"link,omitempty"`
}

func (s *Server) greet(out Output) error {
	g := greeting{Address: s.URL(), PublicURL: s.cfg.PublicURL}
	if s.first != nil {
		base := s.URL()
		if s.cfg.TLS() && s.cfg.PublicURL != "" {
			// A certificate is made out to the public name, not to an address.
			base = strings.TrimRight(s.cfg.PublicURL, "/")
		}
		g.Link = s.link
		g.Org, g.User, g.Key = s.first.Org.ID, s.first.Admin.ID, s.first.Secret
		g.Curl = fmt.Sprintf("curl -sS -H 'Authorization: Bearer %s' %s/api/v1/orgs/%s/proposals", g.Key, base, g.Org)
	}
	if out.JSON {
		return json.NewEncoder(out.Stdout).Encode(g)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Parley is listening on %s\n", g.Address)
	if g.PublicURL != "" {
		fmt.Fprintf(&b, "Public address: %s\n", g.PublicURL)
	}
	if g.Key != "" {
		fmt.Fprintf(&b, "\nThe store was empty: org %q and its user %q were created.\n", g.Org, g.User)
		fmt.Fprintf(&b, "This is the first key. It is shown once:\n\n  %s\n\nTry it:\n\n  %s\n\n", g.Key, g.Curl)
		if g.Link != "" {
			fmt.Fprintf(&b, "Open this to choose the password of %q. It works once, for a day:\n\n  %s\n\n", g.User, g.Link)
		}
	}
	_, err := io.WriteString(out.Stdout, b.String())
	return err
}
