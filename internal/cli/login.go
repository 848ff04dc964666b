package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/clilogin"
	"github.com/parley-dev/parley/sdk/client"
)

// newHTTPClient returns the client that signs in, renews a login and ends it.
func newHTTPClient() *http.Client {
	return &http.Client{
		Timeout: requestTimeout,
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
			TLSHandshakeTimeout: 10 * time.Second,
			ForceAttemptHTTP2:   true,
		},
		// Secrets must not follow a redirect.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

const requestTimeout = 30 * time.Second

// storedLogin returns the login at a server, or nil. Without a configuration folder there
// are no logins.
func storedLogin(server string, c *http.Client) (*clilogin.Source, error) {
	file, err := clilogin.Default()
	if err != nil {
		return nil, nil //nolint:nilerr // see above
	}
	return file.Source(server, c)
}

// latestLogin returns the server of the latest login; "" if there is none.
func latestLogin() (string, error) {
	file, err := clilogin.Default()
	if err != nil {
		return "", nil //nolint:nilerr // as in storedLogin
	}
	return file.Latest()
}

// whereFlags say which server a login is at.
type whereFlags struct {
	jsonFlag `embed:""`
	Server   string `help:"${server}." env:"PARLEY_SERVER" placeholder:"URL" group:"server"`
}

// resolve fills in the server that was not named.
func (f *whereFlags) resolve() error {
	var err error
	f.Server, err = (&connection{Server: f.Server}).resolve()
	return err
}

type loginCmd struct {
	whereFlags `embed:""`
	Scope      []string `help:"Scope to ask for; may be repeated. All that you may grant if not given." placeholder:"SCOPE"`
	NoBrowser  bool     `help:"Open no browser: open the printed URL on any machine, and paste the URL where that browser ends."`
}

// Help is shown by --help.
func (loginCmd) Help() string {
	return "Opens your browser, where you sign in and choose what commands on this machine may do. Later commands use " +
		"the login, its server and its org; a key (PARLEY_KEY or --key) takes precedence. The login is kept in a file " +
		"that only you can read: " +
		clilogin.Variable + ", or parley/credentials.json in your configuration folder. PARLEY_BROWSER names the " +
		"program that opens URLs.\n\n" +
		examples("parley login --server https://parley.example", "parley login --scope svc:tasks:read", "parley login --no-browser")
}

func (c *loginCmd) Run(e *env) error {
	if err := c.resolve(); err != nil {
		return err
	}
	file, err := clilogin.Default()
	if err != nil {
		return err
	}
	if _, _, err := file.Login(c.Server); err != nil {
		return err // before the person signs in for nothing
	}
	request := clilogin.Ask{
		Server: c.Server, Scopes: c.Scope, HTTP: newHTTPClient(), Show: func(url string) { c.show(e, url) },
	}
	if c.NoBrowser {
		request.Pasted = e.stdin
	}
	l, err := clilogin.SignIn(e.ctx, request)
	if err != nil {
		return err
	}
	old, had, err := c.keep(e, file, &l, request.HTTP)
	if err != nil {
		// A login that cannot be kept must not stay valid.
		return errors.Join(err, clilogin.Revoke(e.ctx, l, request.HTTP))
	}
	if had {
		// The login that it replaces must not stay valid.
		if err := clilogin.Revoke(e.ctx, old, request.HTTP); err != nil {
			e.notice("the previous login was not ended: " + cleanLine(err.Error()))
		}
	}
	if os.Getenv("PARLEY_KEY") != "" {
		e.notice("PARLEY_KEY is set and takes precedence over this login; unset it to use the login")
	}
	if c.JSON {
		return e.printJSON(object{
			"server", clilogin.Address(c.Server), "org", l.Org, "principal", l.Principal, "scopes", l.Scopes,
		})
	}
	return e.say("signed in at %s as %s of org %s: %s",
		clilogin.Address(c.Server), l.Principal, l.Org, strings.Join(l.Scopes, " "))
}

// keep asks the server which principal the login acts as, and stores it in the file.
func (c *loginCmd) keep(
	e *env, file *clilogin.File, l *clilogin.Login, h *http.Client,
) (old clilogin.Login, had bool, err error) {
	api, err := client.New(client.Config{URL: c.Server, Key: l.AccessToken, HTTPClient: h})
	if err != nil {
		return old, false, err
	}
	me, err := api.Me(e.ctx)
	if err != nil {
		return old, false, explain(err)
	}
	l.Org, l.Principal = me.Org, me.Principal
	return file.Put(e.ctx, c.Server, *l)
}

// show prints where to sign in. It prints to stderr: stdout is for the result.
func (c *loginCmd) show(e *env, url string) {
	if c.NoBrowser {
		fmt.Fprintf(e.stderr, "Open this URL in a browser, on any machine:\n\n  %s\n\n"+
			"The browser ends at a URL that begins with http://127.0.0.1/callback and shows nothing. Paste that URL here:\n", url)
		return
	}
	fmt.Fprintf(e.stderr, "Your browser opens to sign in. If it does not, open this URL on this machine, "+
		"or try --no-browser:\n\n  %s\n\n", url)
	if err := clilogin.Open(url); err != nil {
		e.notice("no browser was opened: " + cleanLine(err.Error()))
	}
}

type logoutCmd struct {
	whereFlags `embed:""`
}

// Help is shown by --help.
func (logoutCmd) Help() string {
	return "Ends the login at the server and deletes it here. Keys stay as they are.\n\n" +
		examples("parley logout", "parley logout --server https://parley.example")
}

func (c *logoutCmd) Run(e *env) error {
	if err := c.resolve(); err != nil {
		return err
	}
	file, err := clilogin.Default()
	if err != nil {
		return err
	}
	had, err := file.Logout(e.ctx, c.Server, newHTTPClient())
	if err != nil {
		return err
	}
	server := clilogin.Address(c.Server)
	if c.JSON {
		return e.printJSON(object{"server", server, "was_signed_in", had})
	}
	if !had {
		return e.say("you were not signed in at %s", server)
	}
	return e.say("signed out at %s", server)
}

type whoamiCmd struct {
	serverFlags `embed:""`
}

// Help is shown by --help.
func (whoamiCmd) Help() string {
	return "Asks the server, so it also shows whether the key or the login works.\n\n" +
		examples("parley whoami", "parley whoami --server https://parley.example --json")
}

func (c *whoamiCmd) Run(e *env) error {
	cl, err := c.client(e)
	if err != nil {
		return err
	}
	var res client.Response
	me, err := cl.Me(e.ctx, client.WithResponse(&res))
	if err != nil {
		return cl.explain(e, aboutOrg, err)
	}
	if me.Principal == "" || me.Org == "" {
		return fmt.Errorf("unexpected response of %s: it has no principal; is it a Parley server?", cl.Server)
	}
	if err := cl.isOrg(e, me); err != nil {
		return err
	}
	by := "key"
	if cl.login != nil {
		by = "login"
	}
	if c.JSON {
		var all map[string]any
		if err := json.Unmarshal(res.Body, &all); err != nil {
			return err
		}
		all["server"], all["by"] = clilogin.Address(cl.Server), by
		return e.printJSON(all)
	}
	rec := record{p: e.palette()}
	rec.heading(me.Principal)
	rec.field("name", cleanLine(me.Name))
	rec.field("org", cleanLine(me.Org))
	rec.field("admin", yes(me.Admin))
	rec.field("server", cleanLine(clilogin.Address(cl.Server)))
	rec.field("by", by+" ("+cleanLine(me.Credential)+")")
	rec.field("scopes", cleanLine(strings.Join(me.Scopes, " ")))
	if cl.login != nil {
		rec.field("signed in", when(cl.login.Login().Since)+" UTC")
		rec.field("token until", when(me.ExpiresAt)+" UTC, then renewed")
	} else {
		rec.field("expires", when(me.ExpiresAt))
	}
	_, err = e.stdout.Write([]byte(rec.b.String()))
	return err
}
