package cli

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/clilogin"
	"github.com/parley-dev/parley/sdk/client"
)

// serverFlags say which server to speak to, and as whom.
type serverFlags struct {
	jsonFlag `embed:""`
	Server   string `help:"Address of the server; ${default} if not given." default:"http://127.0.0.1:8080" env:"PARLEY_SERVER" placeholder:"URL" group:"server"`
	Key      string `help:"API key; better given as PARLEY_KEY, because other users of the machine can see flags. Your login at the server if not given (parley login)." env:"PARLEY_KEY" placeholder:"KEY" group:"server"`
	Org      string `help:"Org to work in; that of your login, or else main, if not given." env:"PARLEY_ORG" placeholder:"ORG" group:"server"`
}

// remote is a server, and how the command acts there.
type remote struct {
	*client.Client
	login *clilogin.Source // nil: by a key, or without credentials
}

func (f *serverFlags) client(e *env) (*remote, error) {
	r, err := f.anyClient(e)
	if err == nil && f.Key == "" && r.login == nil {
		return nil, errNoCredential(f.Server)
	}
	return r, err
}

func errNoCredential(server string) error {
	return usage("an API key or a login is needed: run parley login --server %s, or set PARLEY_KEY, or pass --key (parley key create makes one)", server)
}

// base is the address of the server, without a trailing slash.
func (f *serverFlags) base() string { return strings.TrimRight(f.Server, "/") }

// anyClient is for what can be asked without a key, too.
func (f *serverFlags) anyClient(e *env) (*remote, error) {
	if err := checkServer(f.Server); err != nil {
		return nil, err
	}
	cfg := e.config(f.Server, f.Key)
	r := &remote{}
	if f.Key == "" {
		var err error
		if r.login, err = storedLogin(f.Server, newHTTPClient()); err != nil {
			return nil, err
		}
	}
	if r.login != nil {
		cfg.Tokens = r.login
	}
	if f.Org == "" {
		if f.Org = "main"; r.login != nil {
			f.Org = r.login.Login().Org
		}
	}
	cfg.Org = f.Org
	var err error
	r.Client, err = client.New(cfg)
	return r, err
}

// config is how commands call a server.
func (e *env) config(server, key string) client.Config {
	cfg := client.Config{URL: server, Key: key, UserAgent: "parley/" + app.Version(), Retry: e.retry}
	cfg.Retry.OnRetry = func(r client.Retrying) {
		what := "trying again"
		if r.Stream {
			what = "going on"
		}
		e.notice(fmt.Sprintf("%s; %s in %s", reason(r.Err), what, r.Wait.Round(100*time.Millisecond)))
	}
	return cfg
}

func (e *env) notice(s string) { fmt.Fprintln(e.stderr, "parley: "+clean(s)) }

// reason says in one line why a request is repeated.
func reason(err error) string {
	var refused *client.Error
	if errors.As(err, &refused) {
		return fmt.Sprintf("the server answered %d %s", refused.Status, http.StatusText(refused.Status))
	}
	return explain(err).Error()
}

func checkServer(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return usage("--server must start with http:// or https:// and name a host; it is %q", address)
	}
	return nil
}

// ask calls the server and returns the response for the caller to print. It is done if
// that failed, or if --json asks for the response as it came.
func ask[T any](e *env, f *serverFlags, do func(c *client.Client, raw client.Option) (T, error)) (v T, done bool, _ error) {
	r, err := f.client(e)
	if err != nil {
		return v, true, err
	}
	return askAt(e, r, f.JSON, do)
}

// askAt is ask of a server that is known already.
func askAt[T any](e *env, r *remote, asJSON bool, do func(c *client.Client, raw client.Option) (T, error)) (v T, done bool, _ error) {
	var res client.Response
	v, err := do(r.Client, client.WithResponse(&res))
	if err != nil || asJSON {
		return v, true, e.rawOr(res.Body, explain(err))
	}
	return v, false, nil
}
