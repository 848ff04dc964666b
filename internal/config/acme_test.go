package config

import (
	"strings"
	"testing"
)

func TestACMESettingsAreChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string // part of the error; empty for none
	}{
		{[]string{"--acme", "parley.example"}, ""},
		{[]string{"--acme", "a.example,b.example,xn--bcher-kva.example", "--acme-email", "a@b.example"}, ""},
		{[]string{"--acme", "a.example", "--acme-http-listen", "off"}, ""},
		{[]string{"--acme", "a.example", "--acme-http-listen", "80"}, "--acme-http-listen must be HOST:PORT"},
		{[]string{"--acme", "a.example", "--acme-directory", "http://ca.example/dir"}, "--acme-directory must be a URL that starts with https://"},
		{[]string{"--acme", "a.example", "--acme-email", "admin"}, "--acme-email must be an e-mail address"},
		{[]string{"--acme", "a.example", "--tls-cert", "c", "--tls-key", "k"}, "--acme and --tls-cert exclude each other"},
		{[]string{"--acme", "*.example.com"}, "wildcard"},
		{[]string{"--acme", "192.0.2.1"}, "not the IP address 192.0.2.1"},
		{[]string{"--acme", "::1"}, "not the IP address ::1"},
		{[]string{"--acme", "https://a.example"}, "without a scheme or port"},
		{[]string{"--acme", "a.example:443"}, "without a scheme or port"},
		{[]string{"--acme", "localhost"}, "must name domains"},
		{[]string{"--acme", "a..example"}, "must name domains"},
		{[]string{"--acme=-a.example"}, "must name domains"},
		{[]string{"--acme", "bücher.example"}, "in ASCII"},
		{[]string{"--acme", strings.Repeat("a.example,", 50) + "b.example"}, "at most 50"},
		{[]string{"--acme-email", "a@b.example"}, "--acme-email is for --acme"},
		{[]string{"--acme-ca", "ca.pem"}, "--acme-ca is for --acme"},
	} {
		got, err := parse(t, c.args...)
		if err == nil {
			err = got.Validate()
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.args, err, c.want)
		}
	}
}

func TestACMEImpliesAddressAndURL(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args        []string
		given       bool
		listen, url string
	}{
		{nil, false, "127.0.0.1:8080", ""},
		{[]string{"--acme", "A.example,b.example"}, false, ":443", "https://a.example"},
		{[]string{"--acme", "a.example", "--listen", ":8443"}, true, ":8443", "https://a.example:8443"},
		{[]string{"--acme", "a.example", "--listen", ":0"}, true, ":0", "https://a.example"},
		{[]string{"--acme", "a.example", "--public-url", "https://x.example"}, false, ":443", "https://x.example"},
	} {
		got, err := parse(t, c.args...)
		if err != nil {
			t.Fatal(err)
		}
		got.CompleteACME(c.given)
		if got.Listen != c.listen || got.PublicURL != c.url || got.TLS() != (len(c.args) > 0) {
			t.Errorf("%v: listen %s, URL %s, TLS %v", c.args, got.Listen, got.PublicURL, got.TLS())
		}
	}
}
