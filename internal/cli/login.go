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

// newHTTPClient sends the requests that sign in, renew a login and end it.
func newHTTPClient() *http.Client {
	return &http.Client{
		Timeout: requestTimeout,
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
			TLSHandshakeTimeout: 10 * time.Second,
			ForceAttemptHTTP2:   true,
		},
		// No secret must follow a redirect to wherever it leads.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

const requestTimeout = 30 * time.Second

// storedLogin is the login at a server; nil: there is none. Who has no place for
// logins has none.
func storedLogin(server string, c *http.Client) (*clilogin.Source, error) {
	file, err := clilogin.Default()
	if err != nil {
		return nil, nil //nolint:nilerr // see above
	}
	return file.Source(server, c)
}

// whereFlags say which server a login is about.
type whereFlags struct {
	jsonFlag `embed:""`
	Server   string `help:"Address of the server; ${default} if not given." default:"http://127.0.0.1:8080" env:"PARLEY_SERVER" placeholder:"URL" group:"server"`
}

type loginCmd struct {
	whereFlags `embed:""`
	Scope      []string `help:"Right to ask for; may be repeated. All that you may give if not given." placeholder:"SCOPE"`
	NoBrowser  bool     `help:"Open no browser: open the printed address anywhere, and paste here the address at which that browser ends."`
}

// Help is shown by --help.
func (loginCmd) Help() string {
	return "Opens your browser, where you sign in and choose what commands of this machine may do. PARLEY_BROWSER names the program that opens addresses. " +
		"The login is kept in a file of your own, " + clilogin.Variable + " or parley/credentials.json in your folder of settings; a key (PARLEY_KEY, --key) goes before it.\n\n" +
		examples("parley login --server https://parley.example", "parley login --scope svc:tasks:read", "parley login --no-browser")
}

func (c *loginCmd) Run(e *env) error {
	if err := checkServer(c.Server); err != nil {
		return err
	}
	file, err := clilogin.Default()
	if err != nil {
		return err
	}
	if _, _, err := file.Login(c.Server); err != nil {
		return err // before somebody signs in for nothing
	}
	ask := clilogin.Ask{Server: c.Server, Scopes: c.Scope, HTTP: newHTTPClient(), Show: func(address string) { c.show(e, address) }}
	if c.NoBrowser {
		ask.Pasted = e.stdin
	}
	l, err := clilogin.SignIn(e.ctx, ask)
	if err != nil {
		return err
	}
	old, had, err := c.keep(e, file, &l, ask.HTTP)
	if err != nil {
		// What cannot be used must not work on, either.
		return errors.Join(err, clilogin.Revoke(e.ctx, l, ask.HTTP))
	}
	if had {
		// One login is enough; what it replaces must not work on.
		if err := clilogin.Revoke(e.ctx, old, ask.HTTP); err != nil {
			fmt.Fprintf(e.stderr, "parley: the login before this one was not ended: %s\n", cleanLine(err.Error()))
		}
	}
	if os.Getenv("PARLEY_KEY") != "" {
		fmt.Fprintln(e.stderr, "parley: PARLEY_KEY is set and goes before this login; unset it to use the login")
	}
	if c.JSON {
		return e.printJSON(object{"server", clilogin.Address(c.Server), "org", l.Org, "principal", l.Principal, "scopes", l.Scopes})
	}
	_, err = fmt.Fprintf(e.stdout, "signed in at %s as %s of org %s: %s\n", clilogin.Address(c.Server), cleanLine(l.Principal), cleanLine(l.Org), cleanLine(strings.Join(l.Scopes, " ")))
	return err
}

// keep asks whom the login is for, and puts it into the file.
func (c *loginCmd) keep(e *env, file *clilogin.File, l *clilogin.Login, h *http.Client) (old clilogin.Login, had bool, err error) {
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

// show tells where to go. It goes to stderr: stdout is for what came of it.
func (c *loginCmd) show(e *env, address string) {
	if c.NoBrowser {
		fmt.Fprintf(e.stderr, "Open this address in a browser, on any machine:\n\n  %s\n\n"+
			"At the end it goes to an address that begins with http://127.0.0.1/callback and shows nothing. Paste that address here:\n", address)
		return
	}
	fmt.Fprintf(e.stderr, "Your browser opens to sign in. If it does not, open this address on this machine, or try --no-browser:\n\n  %s\n\n", address)
	if err := clilogin.Open(address); err != nil {
		fmt.Fprintf(e.stderr, "parley: no browser was opened: %s\n", cleanLine(err.Error()))
	}
}

type logoutCmd struct {
	whereFlags `embed:""`
}

// Help is shown by --help.
func (logoutCmd) Help() string {
	return "Ends the login at the server and forgets it here. Keys stay as they are.\n\n" + examples("parley logout", "parley logout --server https://parley.example")
}

func (c *logoutCmd) Run(e *env) error {
	if err := checkServer(c.Server); err != nil {
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
	text := "signed out at %s\n"
	if !had {
		text = "you were not signed in at %s\n"
	}
	_, err = fmt.Fprintf(e.stdout, text, server)
	return err
}

type whoamiCmd struct {
	serverFlags `embed:""`
}

// Help is shown by --help.
func (whoamiCmd) Help() string {
	return "Asks the server, so it also tells whether the key or the login works.\n\n" + examples("parley whoami", "parley whoami --server https://parley.example --json")
}

func (c *whoamiCmd) Run(e *env) error {
	cl, err := c.client(e)
	if err != nil {
		return err
	}
	var res client.Response
	me, err := cl.Me(e.ctx, client.WithResponse(&res))
	if err != nil {
		return explain(err)
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
		all["server"], all["by"] = clilogin.Address(c.Server), by
		return e.printJSON(all)
	}
	rec := record{p: e.palette()}
	rec.heading(me.Principal)
	rec.field("name", cleanLine(me.Name))
	rec.field("org", cleanLine(me.Org))
	rec.field("admin", yes(me.Admin))
	rec.field("server", cleanLine(clilogin.Address(c.Server)))
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
