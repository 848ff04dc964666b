package e2e

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// guess tries a password of user:ann of the org honest from an address, which a proxy
// tells the server.
func (s *siege) guess(t *testing.T, address, password string) *http.Response {
	t.Helper()
	form := url.Values{"org": {"honest"}, "user": {"ann"}, "password": {password}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.base+"/login", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("X-Forwarded-For", address)
	res, err := taskClient.Transport.RoundTrip(req)
	if err != nil {
		t.Error(err)
		return &http.Response{}
	}
	_ = res.Body.Close()
	return res
}

// TestSiegeLogins guesses a password 120 times at once from one address, then from a
// thousand addresses at once. Few guesses are checked, the memory for hashing is
// bounded, honest callers notice nothing, and the owner still gets in.
func TestSiegeLogins(t *testing.T) {
	eachSiege(t, func(t *testing.T, s *siege) {
		link := setupLink.FindString(s.cli(t, "admin", "link", "--org", "honest", "--user", "ann", "--public-url", s.base))
		ann := &person{base: s.base, http: &http.Client{Jar: must(cookiejar.New(nil))(t)}}
		if res, body := ann.do(t, http.MethodPost, link, url.Values{"password": {password}, "repeat": {password}}); res.StatusCode != http.StatusOK {
			t.Fatal(res.Status, body)
		}
		const home = "198.51.100.7"
		if res := s.guess(t, home, password); res.StatusCode != http.StatusSeeOther {
			t.Fatal("the owner cannot sign in:", res.Status)
		}
		flood := func(n int, from func(i int) string) (checked, shed int64) {
			var wrong, refused atomic.Int64
			var wg sync.WaitGroup
			for i := range n {
				wg.Go(func() {
					switch res := s.guess(t, from(i), "not the password"); res.StatusCode {
					case http.StatusUnauthorized:
						wrong.Add(1)
					case http.StatusTooManyRequests, http.StatusServiceUnavailable:
						refused.Add(1)
						mustShed(t, res)
					default:
						t.Errorf("a guess: %s", res.Status)
					}
				})
			}
			wg.Wait()
			return wrong.Load(), refused.Load()
		}
		checked, shed := flood(120, func(int) string { return "203.0.113.1" })
		t.Logf("one address: %d checked, %d refused", checked, shed)
		if checked > 10 {
			t.Errorf("%d of 120 guesses at once from one address were checked; want 10 at most", checked)
		}
		if res := s.guess(t, "198.51.100.8", password); res.StatusCode != http.StatusSeeOther {
			t.Error("one address keeps the owner out:", res.Status)
		}
		checked, shed = flood(1000, func(i int) string { return fmt.Sprintf("10.9.%d.%d", i/250, i%250) })
		t.Logf("many addresses: %d checked, %d refused", checked, shed)
		if checked > 120 {
			t.Errorf("%d of 1,000 guesses on one account were checked; want about 100", checked)
		}
		if res := s.guess(t, home, password); res.StatusCode != http.StatusSeeOther {
			t.Error("many addresses keep the owner out from home:", res.Status)
		}
	}, "--trusted-proxies", "127.0.0.0/8,::1")
}

// TestSiegeRevocations has an admin of another org make and revoke keys without end:
// what an org revokes is forgotten there at once, and costs the others nothing.
func TestSiegeRevocations(t *testing.T) {
	eachSiege(t, func(t *testing.T, s *siege) {
		s.cli(t, "service", "create", "admin", "--org", "mallory")
		admin := s.newKey(t, "mallory", "service:admin", "svc:admin:admin")
		keys := s.base + "/api/v1/orgs/mallory/keys"
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range siegeSize(40, 400) {
					var made struct{ ID, Secret string }
					status, err := api(t.Context(), http.MethodPost, keys, admin, object{"principal": "service:attacker", "scopes": []string{"svc:tasks:read"}}, &made)
					if status == http.StatusTooManyRequests || status == http.StatusConflict || status == http.StatusServiceUnavailable {
						continue
					}
					if err != nil || status != http.StatusCreated {
						t.Errorf("make a key: %d %v", status, err)
						return
					}
					list := s.base + "/api/v1/orgs/mallory/proposals"
					if status, _ := api(t.Context(), http.MethodGet, list, made.Secret, nil, nil); status != http.StatusOK && status != http.StatusTooManyRequests {
						t.Errorf("a new key: %d", status)
					}
					if status, err := api(t.Context(), http.MethodDelete, keys+"/"+made.ID, admin, nil, nil); err != nil || status != http.StatusOK {
						continue // limited: the key stays
					}
					if status, _ := api(t.Context(), http.MethodGet, list, made.Secret, nil, nil); status != http.StatusUnauthorized && status != http.StatusTooManyRequests {
						t.Errorf("a key that was revoked a moment ago: %d", status)
					}
				}
			})
		}
		wg.Wait()
	})
}
