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
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/web"
)

// Output holds the writers of a server: stdout gets its URL and the first key, stderr the log.
type Output struct {
	Stdout io.Writer
	Stderr io.Writer
	JSON   bool // write a JSON object to stdout
}

// Run serves until ctx ends, then shuts down.
func Run(ctx context.Context, cfg config.Config, out Output) error { return run(ctx, cfg, out, nil) }

// run is Run. demo is nil unless the server has a demo.
func run(ctx context.Context, cfg config.Config, out Output, demo *stage) error {
	log, err := NewLogger(out.Stderr, cfg)
	if err != nil {
		return err
	}
	s, err := newServer(ctx, cfg, log, settings{now: Now, cost: web.StandardCost, demo: demo})
	if err != nil {
		return err
	}
	for _, name := range config.UnknownEnv(os.Environ()) {
		log.Warn("unknown PARLEY_* environment variable", "name", name)
	}
	s.warnIfExposed()
	s.warnOfAddress()
	limitMemory(log)
	tuneCollector()
	another := s.keyCommand(ctx) // before the server starts, so that its URL is printed soon after
	s.Start()
	defer s.noteURL()()
	if err := s.greet(out, another); err != nil {
		log.Error("could not print the URL and the first key; make a new key with: parley key create", "error", err)
	}
	log.Info("serving", "address", s.URL(), "store", s.store.Engine(), "version", Version())
	for _, d := range s.sides {
		log.Info("serving "+d.name, "address", d.url())
	}
	notifyService(log, serviceReady)
	select {
	case <-ctx.Done():
		log.Info("stopping", "timeout", cfg.ShutdownTimeout.String())
	case err = <-s.failed:
	}
	notifyService(log, serviceStopping)
	if serr := s.Shutdown(); err == nil {
		err = serr
	}
	if err == nil {
		log.Info("stopped")
	}
	return err
}

// warnIfExposed logs a warning if keys are sent without encryption.
func (s *Server) warnIfExposed() {
	addr, ok := s.listener.Addr().(*net.TCPAddr)
	if ok && addr.IP.IsLoopback() || s.cfg.TLS() || strings.HasPrefix(s.cfg.PublicURL, "https://") {
		return
	}
	s.log.Warn("other machines can reach this server without TLS, so keys are not encrypted; "+
		"use --acme, or --tls-cert and --tls-key, or put a TLS proxy in front and name it with --public-url https://…",
		slog.String("address", s.listener.Addr().String()))
}

// warnOfAddress logs a warning if cards and links contain a URL that other machines may not
// reach. That URL is never taken from a request.
func (s *Server) warnOfAddress() {
	addr, ok := s.listener.Addr().(*net.TCPAddr)
	if !ok || addr.IP.IsLoopback() || s.cfg.PublicURL != "" {
		return
	}
	s.log.Warn("cards of agents, links and the OAuth issuer contain the address that the server listens on; "+
		"set the URL by which others reach it with --public-url", slog.String("address", s.base()))
}

// greeting is what a server prints when it has started.
type greeting struct {
	Address   string `json:"address"`
	PublicURL string `json:"public_url,omitempty"`
	Store     string `json:"store"`
	Demo      bool   `json:"demo,omitempty"`
	Temporary bool   `json:"temporary,omitempty"` // the store is removed when the server stops
	Org       string `json:"org,omitempty"`
	User      string `json:"user,omitempty"`
	Key       string `json:"key,omitempty"`
	Curl      string `json:"curl,omitempty"`
	Link      string `json:"link,omitempty"`
}

// greet prints the URL, the first key, and the command for another key.
func (s *Server) greet(out Output, another string) error {
	g := greeting{Address: s.URL(), PublicURL: s.cfg.PublicURL, Store: StoreName(s.cfg.Store)}
	if s.stage != nil {
		g.Demo, g.Temporary = true, s.stage.temporary
	}
	if s.first != nil {
		base := s.URL()
		if s.cfg.TLS() && s.cfg.PublicURL != "" {
			// The certificate is for the public name, not for the IP address.
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
		fmt.Fprintf(&b, "Public URL: %s\n", g.PublicURL)
	}
	fmt.Fprintf(&b, "Data: %s\n", g.Store)
	if g.Temporary {
		b.WriteString("The data is removed when the server stops; --data keeps it.\n")
	}
	if g.Demo {
		fmt.Fprintf(&b, "\nThis is a demo: %s has a month of history, and programs play its agents.\n", s.first.Org.Name)
	}
	if g.Key != "" {
		fmt.Fprintf(&b, "\nThe store was empty: org %q and its user %q were created.\n", g.Org, g.User)
		fmt.Fprintf(&b, "This is the first key. It is shown once:\n\n  %s\n\nTry it:\n\n  %s\n\n", g.Key, g.Curl)
		if g.Link != "" {
			fmt.Fprintf(&b, "Open this to choose the password of %q. It works once, for a day:\n\n  %s\n\n",
				g.User, g.Link)
		}
	}
	fmt.Fprintf(&b, "Another key: %s\n\n", another)
	_, err := io.WriteString(out.Stdout, b.String())
	return err
}

// keyCommand returns a command that creates a key for an admin. It has placeholders for what
// is not known.
func (s *Server) keyCommand(ctx context.Context) string {
	user, org := "USER", ""
	op := identity.NewOperator(s.store.IdentityStores(), Now, nil)
	if orgs, err := op.Orgs(ctx); err == nil && len(orgs) > 0 {
		if len(orgs) > 1 {
			org = " --org " + orgs[0].ID
		}
		users, _ := op.Members(ctx, orgs[0].ID, identity.User) // without one the placeholder stays
		for _, u := range users {
			if u.Admin && !u.Disabled {
				user = u.ID
				break
			}
		}
	}
	return "parley key create --as user:" + user + " --scope svc:tasks:read " + s.storeFlag() + org
}

// storeFlag returns the flag that names the store on the command line. The URL of a database
// may have a password, so it is not printed.
func (s *Server) storeFlag() string {
	switch s.cfg.Database {
	case "":
		return "--data " + ShellQuote(s.cfg.Data)
	case os.Getenv("PARLEY_DATABASE"):
		return `--database "$PARLEY_DATABASE"`
	}
	return "--database URL"
}
