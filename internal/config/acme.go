package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// ACME holds the settings with which the server gets certificates by itself.
type ACME struct {
	ACMEDomains    []string `name:"acme" env:"PARLEY_ACME" placeholder:"DOMAIN"`
	ACMEEmail      string   `name:"acme-email" env:"PARLEY_ACME_EMAIL" placeholder:"ADDRESS"`
	ACMEDirectory  string   `name:"acme-directory" default:"https://acme-v02.api.letsencrypt.org/directory" env:"PARLEY_ACME_DIRECTORY" placeholder:"URL"`
	ACMECA         string   `name:"acme-ca" env:"PARLEY_ACME_CA" placeholder:"FILE"`
	ACMEHTTPListen string   `name:"acme-http-listen" default:":80" env:"PARLEY_ACME_HTTP_LISTEN" placeholder:"HOST:PORT"`
}

// DefaultACME returns the default settings.
func DefaultACME() ACME {
	return ACME{ACMEDirectory: "https://acme-v02.api.letsencrypt.org/directory", ACMEHTTPListen: ":80"}
}

// ACMEListen is where a server with --acme listens unless --listen is given.
const ACMEListen = ":443"

// maxDomains bounds the certificates that one server asks for: each domain gets its own.
const maxDomains = 50

// UsesACME reports whether the server gets certificates by itself.
func (a *ACME) UsesACME() bool { return len(a.ACMEDomains) > 0 }

// ACMEHTTPAddress returns the address for challenges and redirects over plain HTTP, or "" for none.
func (a *ACME) ACMEHTTPAddress() string {
	if !a.UsesACME() || a.ACMEHTTPListen == "off" {
		return ""
	}
	return a.ACMEHTTPListen
}

// CompleteACME sets what follows from --acme: the address to listen on, unless it was given, and the
// public URL.
func (c *Config) CompleteACME(listenGiven bool) {
	if !c.UsesACME() {
		return
	}
	if !listenGiven {
		c.Listen = ACMEListen
	}
	if c.PublicURL != "" {
		return
	}
	host := strings.ToLower(c.ACMEDomains[0])
	if _, port, err := net.SplitHostPort(c.Listen); err == nil && port != "443" && port != "https" && port != "0" {
		host = net.JoinHostPort(host, port)
	}
	c.PublicURL = "https://" + host
}

func (c *Config) validateACME() error {
	a := &c.ACME
	switch {
	case !a.UsesACME() && a.ACMEEmail != "":
		return errors.New("--acme-email is for --acme: name the domains of this server with --acme")
	case !a.UsesACME() && a.ACMECA != "":
		return errors.New("--acme-ca is for --acme: name the domains of this server with --acme")
	case !a.UsesACME():
		return nil
	case c.TLSCert != "" || c.TLSKey != "":
		return errors.New("--acme and --tls-cert exclude each other: with --acme the server gets its certificates by " +
			"itself; give one of them")
	case len(a.ACMEDomains) > maxDomains:
		return fmt.Errorf("--acme names %d domains; at most %d are possible", len(a.ACMEDomains), maxDomains)
	case a.ACMEEmail != "" && !strings.Contains(strings.Trim(a.ACMEEmail, "@"), "@"):
		return fmt.Errorf("--acme-email must be an e-mail address; it is %q", a.ACMEEmail)
	}
	for _, domain := range a.ACMEDomains {
		if err := checkDomain(domain); err != nil {
			return err
		}
	}
	if u, err := url.Parse(a.ACMEDirectory); err != nil || u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("--acme-directory must be a URL that starts with https://; it is %q", a.ACMEDirectory)
	}
	if _, port, err := net.SplitHostPort(a.ACMEHTTPAddress()); a.ACMEHTTPAddress() != "" && (err != nil || port == "") {
		return fmt.Errorf("--acme-http-listen must be HOST:PORT, for example :80, or off; it is %q", a.ACMEHTTPListen)
	}
	return nil
}

// checkDomain accepts names that a public ACME server can give a certificate for by the challenges
// that Parley answers.
func checkDomain(s string) error {
	switch {
	case strings.HasPrefix(s, "*."):
		return fmt.Errorf("--acme cannot have the wildcard %q: it needs a change in the DNS; name each domain, or use "+
			"--tls-cert", s)
	case net.ParseIP(strings.Trim(s, "[]")) != nil:
		return fmt.Errorf("--acme must name domains, not the IP address %s", s)
	case strings.Contains(s, "://") || strings.Contains(s, ":"):
		return fmt.Errorf("--acme must name domains such as parley.example, without a scheme or port; it has %q", s)
	}
	ok := len(s) <= 253 && strings.Contains(s, ".")
	for label := range strings.SplitSeq(s, ".") {
		ok = ok && label != "" && len(label) <= 63 && label[0] != '-' && label[len(label)-1] != '-' &&
			!strings.ContainsFunc(label, notInDomain)
	}
	if !ok {
		return fmt.Errorf("--acme must name domains such as parley.example, in ASCII (xn--… for others); it has %q", s)
	}
	return nil
}

func notInDomain(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-'
}
