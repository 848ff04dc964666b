package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/parley-dev/parley/internal/outbound"
	"github.com/parley-dev/parley/internal/sso"
)

func taken(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }

// localURL returns the URL of a server on this machine that listens on an address.
func localURL(addr string, secure bool) string {
	host, port, _ := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme := "http"
	if secure {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// errOther is the error of an address where something else than Parley responds.
var errOther = errors.New("what responds there is not a Parley server")

// serves returns nil if a Parley server responds at a URL of this machine. Its certificate is for
// another name.
func (e *exam) serves(base string) error {
	t := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer t.CloseIdleConnections()
	_, err := e.healthy(&http.Client{Transport: t, Timeout: within}, base)
	return err
}

// healthy returns nil if a Parley server responds at a URL, with the address that it believes to have.
func (e *exam) healthy(c *http.Client, base string) (issuer string, err error) {
	var out struct {
		Issuer string   `json:"issuer"`
		Scopes []string `json:"scopes_supported"`
	}
	if err := e.get(c, base+"/.well-known/oauth-authorization-server", &out); err != nil {
		return "", err
	}
	if !slices.Contains(out.Scopes, "svc:tasks:read") { // no other program has it
		return "", errOther
	}
	return strings.TrimSuffix(out.Issuer, "/"), nil
}

// maxBody bounds a response.
const maxBody = 64 << 10

func (e *exam) get(c *http.Client, address string, out any) error {
	r, err := http.NewRequestWithContext(e.ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	res, err := c.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s returned %s", address, res.Status)
	}
	if json.NewDecoder(io.LimitReader(res.Body, maxBody)).Decode(out) != nil {
		return errOther
	}
	return nil
}

// soon is the time before the end of a certificate from which a warning is due.
const soon = 14 * 24 * time.Hour

// tls looks at the certificate of --tls-cert.
func (e *exam) tls() {
	c := &e.Config
	if !c.TLS() {
		e.ok("the server does not serve TLS itself")
		return
	}
	pair, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
	if err != nil {
		e.fail("cannot use --tls-cert and --tls-key: "+err.Error(), "give the certificate with its chain, and its key, as PEM")
		return
	}
	if st, err := os.Stat(c.TLSKey); err == nil && st.Mode().Perm()&0o004 != 0 {
		e.warn("every user of this machine can read "+c.TLSKey, "chmod 600 "+c.TLSKey)
	}
	leaf := pair.Leaf
	e.expiry("the certificate "+c.TLSCert, leaf)
	if u, err := url.Parse(c.PublicURL); err == nil && u.Hostname() != "" {
		if leaf.VerifyHostname(u.Hostname()) != nil {
			e.fail("the certificate is not for the host of --public-url, "+u.Hostname(), "use a certificate for that name")
		}
	}
}

func (e *exam) expiry(what string, cert *x509.Certificate) {
	now := e.Now()
	end := cert.NotAfter.UTC().Format(time.DateOnly)
	switch {
	case now.Before(cert.NotBefore):
		e.fail(what+" is not valid before "+cert.NotBefore.UTC().Format(time.RFC3339), "check the clock, or the certificate")
	case now.After(cert.NotAfter):
		e.fail(what+" has expired on "+end, "renew it; the server loads a renewed file without a restart")
	case now.Add(soon).After(cert.NotAfter):
		e.warn(what+" expires on "+end, "renew it; the server loads a renewed file without a restart")
	default:
		e.ok(what + " is valid until " + end)
	}
}

// publicURL looks whether the server can be reached at the address that its links have.
func (e *exam) publicURL() {
	base := strings.TrimSuffix(e.Config.PublicURL, "/")
	if base == "" {
		e.ok("--public-url is not set: links have the address that the server listens on")
		return
	}
	u, err := url.Parse(base)
	if err != nil {
		return // "settings" says so
	}
	lookup, cancel := context.WithTimeout(e.ctx, within)
	defer cancel()
	if _, err := net.DefaultResolver.LookupHost(lookup, u.Hostname()); err != nil {
		e.fail(fmt.Sprintf("the host %s does not resolve: %v", u.Hostname(), err), "add it to the DNS, or correct --public-url")
		return
	}
	if u.Scheme == "http" && !loopback(net.JoinHostPort(u.Hostname(), "80")) {
		e.warn("callers send their keys to "+base+" without encryption", "use https: --tls-cert, or a proxy with TLS")
	}
	e.reach(base)
}

func (e *exam) reach(base string) {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment}
	defer t.CloseIdleConnections()
	c := &http.Client{Transport: t, Timeout: within}
	issuer, err := e.healthy(c, base)
	var bad *tls.CertificateVerificationError
	switch {
	case errors.As(err, &bad):
		e.fail("the certificate of "+base+" is not valid: "+bad.Err.Error(), "install one that callers trust")
		return
	case err != nil:
		e.warn("no Parley server responds at "+base+": "+err.Error(),
			"start the server; if it runs, check the proxy, the firewall and --public-url")
		return
	case issuer != base:
		e.fail(fmt.Sprintf("the server at %s believes that its address is %s", base, issuer),
			"start it with the same --public-url")
		return
	}
	e.ok("a Parley server responds at " + base)
	e.served(base)
}

// served looks at the certificate that callers get.
func (e *exam) served(base string) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "https" {
		return
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	d := &tls.Dialer{NetDialer: &net.Dialer{Timeout: within}}
	conn, err := d.DialContext(e.ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return // behind a proxy of the environment
	}
	defer func() { _ = conn.Close() }()
	if t, ok := conn.(*tls.Conn); ok && len(t.ConnectionState().PeerCertificates) > 0 {
		e.expiry("the certificate of "+u.Host, t.ConnectionState().PeerCertificates[0])
	}
}

// receivers looks whether the hosts of webhooks and pushes can be reached, through the same guard as
// deliveries. It sends no event.
func (e *exam) receivers() {
	c := &e.Config
	if !c.Push {
		e.ok("--no-push: nothing is sent")
		return
	}
	guard, err := outbound.New(outbound.Options{
		Allow: slices.Concat(c.OutboundAllow, c.PushAllow), Flag: "--outbound-allow",
	})
	if err != nil {
		return // "settings" says so
	}
	if e.facts == nil || len(e.facts.Receivers) == 0 {
		e.ok("there are no webhooks and no pushes")
		return
	}
	hosts := e.facts.Receivers
	client := guard.Client(within)
	defer client.CloseIdleConnections()
	failed := make([]string, len(hosts))
	e.all(len(hosts), func(i int) { failed[i] = e.knock(guard, client, hosts[i]) })
	good := 0
	for i, why := range failed {
		if why == "" {
			good++
			continue
		}
		e.warn("events for "+hosts[i]+" cannot be delivered: "+why,
			"check the firewall and the receiver; deliveries are repeated for three days")
	}
	if good > 0 {
		e.ok(fmt.Sprintf("receivers of events that can be reached: %d", good))
	}
}

// knock returns why a host cannot be reached. Any response will do: its paths are secrets.
func (e *exam) knock(guard *outbound.Guard, client *http.Client, host string) string {
	if err := guard.Check(host); err != nil {
		return "its URL " + err.Error()
	}
	r, err := http.NewRequestWithContext(e.ctx, http.MethodHead, host, nil)
	if err != nil {
		return "its URL is malformed"
	}
	res, err := client.Do(r)
	if err != nil {
		return guard.Explain(err)
	}
	_ = res.Body.Close()
	return ""
}

// issuers looks whether the identity providers can be reached, and whether their orgs exist.
func (e *exam) issuers() {
	if e.Config.Issuers == "" {
		e.ok("no identity provider is configured")
		return
	}
	list, err := sso.Load(e.Config.Issuers)
	if err != nil {
		e.fail("--issuers: "+err.Error(), "correct the file")
		return
	}
	providers := sso.New(list, e.Log, e.Now)
	failed := make([]error, len(providers))
	e.all(len(providers), func(i int) {
		ctx, cancel := context.WithTimeout(e.ctx, within)
		defer cancel()
		failed[i] = providers[i].Reach(ctx)
	})
	for i, p := range providers {
		if failed[i] != nil {
			e.fail(fmt.Sprintf("the issuer %s cannot be used: %v", p.Name, failed[i]),
				"check its URL in "+e.Config.Issuers+", the firewall and the proxy settings of the environment")
		} else {
			e.ok("the issuer " + p.Name + " can be reached")
		}
		if e.facts != nil && !slices.Contains(e.facts.Orgs, p.Org) {
			e.fail("the org "+p.Org+" of the issuer "+p.Name+" does not exist", "create it, or correct "+e.Config.Issuers)
		}
	}
}

// all calls fn for 0 to n-1, a few at a time.
func (e *exam) all(n int, fn func(i int)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, 16)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			fn(i)
		})
	}
	wg.Wait()
}
