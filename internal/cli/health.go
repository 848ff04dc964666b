package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/config"
)

type healthCmd struct {
	jsonFlag `embed:""`
	Server   string        `help:"URL of the server; the one that PARLEY_LISTEN of this machine describes if not given." env:"PARLEY_SERVER" placeholder:"URL" group:"server"`
	Timeout  time.Duration `help:"How long the server may take to respond; ${default} if not given." default:"3s" placeholder:"DURATION"`
}

// Help is shown by --help.
func (healthCmd) Help() string {
	return "Asks /readyz once, and sends no credentials. The exit code is 0 if the server is ready, and 1 if it is not, " +
		"or does not respond. It is the health check of the container image: without --server it asks the server that the " +
		"settings in the environment describe (PARLEY_LISTEN, PARLEY_TLS_CERT, PARLEY_ACME), or " + defaultServer +
		". The certificate of a server on the same machine is not verified, because it is for the public name.\n\n" + examples(
		"parley health",
		"parley health --server https://parley.example --json",
	)
}

// healthJSON is the output of --json.
type healthJSON struct {
	URL    string `json:"url"`
	Ready  bool   `json:"ready"`
	Status int    `json:"status,omitempty"` // of the response; none without one
	Reason string `json:"reason,omitempty"` // why the server is not ready
}

func (c *healthCmd) Run(e *env) error {
	if c.Timeout <= 0 {
		return usage("--timeout must be more than 0; it is %s", c.Timeout)
	}
	server := strings.TrimRight(c.Server, "/")
	if server == "" {
		server = ownServer(os.Getenv)
	}
	if err := checkServer(server); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(e.ctx, c.Timeout)
	defer cancel()
	out := askHealth(ctx, server)
	if e.ctx.Err() != nil {
		return e.ctx.Err() // interrupted
	}
	if c.JSON {
		if err := e.printJSON(out); err != nil {
			return err
		}
	}
	if !out.Ready {
		return fmt.Errorf("%s is not ready: %s", out.URL, out.Reason)
	}
	if c.JSON {
		return nil
	}
	_, err := fmt.Fprintf(e.stdout, "%s is ready\n", out.URL)
	return err
}

// ownServer returns the URL of the server that the settings in the environment describe.
func ownServer(getenv func(string) string) string {
	acme := getenv("PARLEY_ACME") != ""
	scheme := "http"
	if acme || getenv("PARLEY_TLS_CERT") != "" {
		scheme = "https"
	}
	addr := getenv("PARLEY_LISTEN")
	if addr == "" && acme {
		addr = config.ACMEListen
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return strings.Replace(defaultServer, "http:", scheme+":", 1)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// maxReadiness is larger than any response of /readyz.
const maxReadiness = 64 << 10

// askHealth asks a server once whether it is ready.
func askHealth(ctx context.Context, server string) healthJSON {
	out := healthJSON{URL: server}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/readyz", nil)
	if err != nil {
		out.Reason = err.Error()
		return out
	}
	res, err := healthClient(req.URL.Hostname()).Do(req)
	if err != nil {
		out.Reason = notReached(err)
		return out
	}
	defer func() { _ = res.Body.Close() }()
	out.Status, out.Ready = res.StatusCode, res.StatusCode == http.StatusOK
	if out.Ready {
		return out
	}
	var problem struct {
		Detail string `json:"detail"`
		Title  string `json:"title"`
	}
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxReadiness))
	_ = json.Unmarshal(body, &problem) // a proxy may respond with something else
	out.Reason = cmp.Or(problem.Detail, problem.Title, "it responds with "+res.Status)
	return out
}

// healthClient returns a client that does not follow redirects.
func healthClient(host string) *http.Client {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		// No secret is sent, and the certificate names another host.
		transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// notReached says why there was no response.
func notReached(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "it did not respond in time"
	}
	var in *url.Error
	if errors.As(err, &in) {
		err = in.Err
	}
	return err.Error()
}
