package app

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/store"
)

// StoreName names a store for people: the data folder, or the database without its password.
func StoreName(cfg config.Store) string {
	if cfg.Database == "" {
		return cfg.Data
	}
	u, err := url.Parse(cfg.Database)
	if err != nil {
		return "PostgreSQL" // the URL may have a password anywhere
	}
	u.RawQuery, u.Fragment = "", ""
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	return u.String()
}

// urlFile is in the data folder while a server runs on it, and contains its public URL.
const urlFile = "server.url"

// RunningServer returns the URL by which people reach the server that runs on a data
// folder, if one does.
func RunningServer(cfg config.Store) (string, bool) {
	if cfg.Database != "" {
		return "", false // any number of servers, on any machine
	}
	if !store.InUse(cfg.Data) { // a server that was killed leaves its file behind
		return "", false
	}
	data, err := os.ReadFile(filepath.Join(cfg.Data, urlFile))
	base := strings.TrimSpace(string(data))
	return base, err == nil && base != ""
}

// noteURL writes the file for RunningServer and returns what removes it.
func (s *Server) noteURL() (remove func()) {
	if s.cfg.Database != "" {
		return func() {}
	}
	name := filepath.Join(s.cfg.Data, urlFile)
	if err := os.WriteFile(name, []byte(s.base()+"\n"), 0o600); err != nil {
		s.log.Warn("could not note the URL of this server for parley admin link", "error", err)
	}
	return func() { _ = os.Remove(name) }
}

// ShellQuote returns s as one word of a shell's command line.
func ShellQuote(s string) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune(":/.-_[]%", r)
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
