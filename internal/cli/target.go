package cli

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/clilogin"
	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/sdk/client"
)

// defaultServer is where parley serve listens unless told otherwise.
const defaultServer = "http://127.0.0.1:8080"

// connection says which server a command calls, and as whom.
type connection struct {
	Server string `help:"${server}." env:"PARLEY_SERVER" placeholder:"URL" group:"server"`
	Key    string `help:"${key}." env:"PARLEY_KEY" placeholder:"KEY" group:"server"`
	Org    string `help:"Org to work in; that of your key or login if not given." env:"PARLEY_ORG" placeholder:"ORG" group:"server"`
}

// serverFlags are part of every command that works on a server only.
type serverFlags struct {
	jsonFlag   `embed:""`
	connection `embed:""`
}

// StoreFlags are part of every command that works on a store only. The name is exported
// because kong looks for hooks, and config.Store has some, in exported fields only.
type StoreFlags struct {
	jsonFlag     `embed:""`
	config.Store `embed:""`
}

// EitherFlags are part of every command that works on a server or on a store. It is
// exported for the same reason as StoreFlags.
type EitherFlags struct {
	StoreFlags `embed:""`
	connection `embed:""`
}

// naming says where the flags that name a target came from.
type naming struct{ data, database, server, config config.Source }

func namingOf(k *kong.Context) naming {
	if k == nil {
		return naming{}
	}
	return naming{
		data: config.SourceOf(k, "data"), database: config.SourceOf(k, "database"),
		server: config.SourceOf(k, "server"), config: config.SourceOf(k, "config"),
	}
}

// store is the one rule for the target of a command that accepts a server or a store: it
// works on a store only if --data or --database names one. PARLEY_DATA, PARLEY_DATABASE and
// the configuration file are for commands that work on a store only; otherwise the commands
// about agents or keys would be split over two targets.
func (n naming) store() (bool, error) {
	flag := ""
	switch {
	case n.data == config.FromFlag:
		flag = "data"
	case n.database == config.FromFlag:
		flag = "database"
	case n.config == config.FromFlag:
		return false, usage("--config does not name a store for this command; give --data or --database, or leave it out")
	default:
		return false, nil
	}
	if n.server == config.FromFlag {
		return false, usage("--%s names a store and --server a server; give one of them", flag)
	}
	return true, nil
}

// remote returns the server to work on, or nil if the command works on the store.
func (f *EitherFlags) remote(e *env) (*remote, error) {
	store, err := namingOf(e.kong).store()
	if err != nil || store {
		return nil, err
	}
	r, err := f.connection.anyClient(e)
	if err == nil && !r.credentials() {
		return nil, usage("%s; to work on a store instead, name it with --data or --database", r.noCredentials())
	}
	return r, err
}

// remote is a server, and how the command acts there.
type remote struct {
	*client.Client
	Server string
	Key    string
	named  string           // the org, if the command names one
	login  *clilogin.Source // nil: with a key, or without credentials
}

// resolve returns the server, also if none is named. A key is never sent to a server that
// only a login names: the two may have nothing to do with each other.
func (f *connection) resolve() (string, error) {
	server := strings.TrimRight(f.Server, "/")
	if server == "" && f.Key == "" {
		var err error
		if server, err = latestLogin(); err != nil {
			return "", err
		}
	}
	server = cmp.Or(server, defaultServer)
	return server, checkServer(server)
}

// client returns the server. Without credentials it is an error.
func (f *connection) client(e *env) (*remote, error) {
	r, err := f.anyClient(e)
	if err == nil && !r.credentials() {
		return nil, usage("%s", r.noCredentials())
	}
	return r, err
}

// anyClient returns the server for requests that need no credentials.
func (f *connection) anyClient(e *env) (*remote, error) {
	server, err := f.resolve()
	if err != nil {
		return nil, err
	}
	r := &remote{Server: server, Key: f.Key, named: f.Org}
	cfg := e.config(server, f.Key)
	// An empty --key means no credentials at all, not the login's.
	noKey := e.kong != nil && config.SourceOf(e.kong, "key") == config.FromFlag
	if f.Key == "" && !noKey {
		if r.login, err = storedLogin(server, newHTTPClient()); err != nil {
			return nil, err
		}
	}
	if cfg.Org = f.Org; r.login != nil {
		cfg.Tokens, cfg.Org = r.login, cmp.Or(f.Org, r.login.Login().Org)
	}
	r.Client, err = client.New(cfg)
	return r, err
}

func (r *remote) credentials() bool { return r.Key != "" || r.login != nil }

func (r *remote) noCredentials() string {
	return fmt.Sprintf(`no API key and no login for %s; run "parley login --server %s", or set PARLEY_KEY`, r.Server, r.Server)
}

// in names the place of a success line: the org and the server.
func (r *remote) in(e *env) string {
	org, err := r.Org(e.ctx)
	if err != nil {
		return "on " + r.Server // the command has succeeded all the same
	}
	return fmt.Sprintf("in org %q on %s", cleanLine(org), r.Server)
}

// in names the place of a success line: the org, if the thing belongs to one, and the store.
func (f *StoreFlags) in(org string) string {
	if org == "" {
		return "in store " + app.StoreName(f.Store)
	}
	return fmt.Sprintf("in org %q in store %s", org, app.StoreName(f.Store))
}

func checkServer(server string) error {
	u, err := url.Parse(server)
	if err != nil && strings.Contains(server, "@") {
		return usage("--server must be a URL without a user or password") // which must not be printed
	}
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return usage("--server must start with http:// or https:// and name a host; it is %q", server)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return usage("--server must have no user, password, query or fragment") // which must not be printed
	}
	return nil
}

// otherTarget explains why a command has no --server, --data or --database; "" if the
// unknown flag is another.
func otherTarget(n *kong.Node, message string) string {
	var flags []string
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			flags = append(flags, f.Name)
		}
	}
	has := func(name string) bool {
		for _, f := range flags {
			if f == name {
				return true
			}
		}
		return false
	}
	unknown := func(flag string) bool {
		rest, ok := strings.CutPrefix(message, "unknown flag --"+flag)
		return ok && (rest == "" || rest[0] == ',')
	}
	switch {
	case unknown("server") && has("data"):
		return fmt.Sprintf("%s is for the operator and works on a store (--data or --database), not on a server", n.FullPath())
	case (unknown("data") || unknown("database")) && has("server"):
		return fmt.Sprintf("%s works on a server (--server), not on a store", n.FullPath())
	}
	return ""
}
