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

// guess tries a password of user:ann of the org honest from an IP address, given in a proxy's
// header.
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

// TestSiegeLogins guesses a password 120 times at once from one IP address, then from a thousand
// at once. Few guesses are checked, the memory for hashing is bounded, honest callers are not
// affected, and the owner can still sign in.
func TestSiegeLogins(t *testing.T) {
	frontSiege(t, func(t *testing.T, s *siege) {
		link := setupLink.FindString(s.cli(t, "admin", "link", "--org", "honest", "--user", "ann", "--public-url", s.base))
		ann := &person{base: s.base, http: &http.Client{Jar: must(cookiejar.New(nil))(t)}}
		if res, body := ann.do(t, http.MethodPost, link,
			url.Values{"password": {password}, "repeat": {password}}); res.StatusCode != http.StatusOK {
			t.Fatalf("set the password: status = %s, want 200: %s", res.Status, body)
		}
		const home = "198.51.100.7"
		if res := s.guess(t, home, password); res.StatusCode != http.StatusSeeOther {
			t.Fatalf("login of the owner: status = %s, want 303", res.Status)
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
						t.Errorf("guess: status = %s, want a refusal", res.Status)
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
			t.Errorf("login of the owner while one address guesses: status = %s, want 303", res.Status)
		}
		checked, shed = flood(1000, func(i int) string { return fmt.Sprintf("10.9.%d.%d", i/250, i%250) })
		t.Logf("many addresses: %d checked, %d refused", checked, shed)
		if checked > 120 {
			t.Errorf("%d of 1,000 guesses on one account were checked; want about 100", checked)
		}
		if res := s.guess(t, home, password); res.StatusCode != http.StatusSeeOther {
			t.Errorf("login of the owner from home while many addresses guess: status = %s, want 303", res.Status)
		}
	}, "--trusted-proxies", "127.0.0.0/8,::1")
}

// TestSiegeRevocations has an admin of another org create and revoke keys without end: a
// revocation clears the cache of its own org only.
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
					status, err := api(t.Context(), http.MethodPost, keys, admin,
						object{"principal": "service:attacker", "scopes": []string{"svc:tasks:read"}}, &made)
					if status == http.StatusTooManyRequests || status == http.StatusConflict ||
						status == http.StatusServiceUnavailable {
						continue
					}
					if err != nil || status != http.StatusCreated {
						t.Errorf("create a key: got %d, %v; want 201", status, err)
						return
					}
					list := s.base + "/api/v1/orgs/mallory/proposals"
					if status, _ := api(t.Context(), http.MethodGet, list, made.Secret, nil, nil); status != http.StatusOK &&
						status != http.StatusTooManyRequests {
						t.Errorf("new key: status = %d, want 200 or 429", status)
					}
					if status, err := api(t.Context(), http.MethodDelete, keys+"/"+made.ID, admin, nil, nil); err != nil ||
						status != http.StatusOK {
						continue // limited: the key stays
					}
					if status, _ := api(t.Context(), http.MethodGet, list, made.Secret, nil, nil); status != http.StatusUnauthorized &&
						status != http.StatusTooManyRequests {
						t.Errorf("key revoked a moment ago: status = %d, want 401 or 429", status)
					}
				}
			})
		}
		wg.Wait()
	})
}
