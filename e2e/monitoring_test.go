package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestMonitoring loads the alert rules and the dashboard of deploy/ into a real Prometheus that
// scrapes a server. It finds every metric that they name, and understands every query.
func TestMonitoring(t *testing.T) {
	t.Parallel()
	bin, err := exec.Command("../scripts/prometheus").Output()
	if err != nil {
		t.Fatalf("scripts/prometheus: %v", err)
	}
	e := engine{"sqlite", []string{"--data", t.TempDir()}}
	s := serve(t, e, "--metrics-listen", "127.0.0.1:0")
	readPage(t, s.base+"/api/v1/orgs/main/proposals", s.key, new(any))
	p := startPrometheus(t, strings.TrimSpace(string(bin)), scraped(t, s))

	eventually(t, soon, "Prometheus has scraped the server", func() bool {
		return len(p.query(t, `parley_build_info`)) > 0 && len(p.query(t, `parley_http_request_duration_seconds_bucket`)) > 0
	})
	rules := p.rules(t)
	text, err := os.ReadFile("../deploy/prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Count(string(text), "- alert:"); want < 10 || len(rules) != want {
		t.Errorf("Prometheus has %d rules of %d", len(rules), want)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if text, err = os.ReadFile("../deploy/grafana/parley.json"); err == nil {
		err = json.Unmarshal(text, &board)
	}
	if err != nil {
		t.Fatal(err)
	}
	queries := rules
	grafana := strings.NewReplacer("$__rate_interval", "1m", "$job", "parley", "$instance", ".*")
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			queries = append(queries, grafana.Replace(target.Expr))
		}
	}
	var named []string
	for _, q := range queries {
		p.query(t, q) // fails the test if it is malformed
		named = append(named, metricName.FindAllString(q, -1)...)
	}
	slices.Sort(named)
	named = slices.Compact(named)
	if len(named) < 25 {
		t.Errorf("the rules and the dashboard name %v, want more", named)
	}
	for _, name := range named {
		if len(p.query(t, `count(`+name+`)`)) == 0 {
			t.Errorf("no server has the metric %s", name)
		}
	}
}

var metricName = regexp.MustCompile(`\b(?:parley|process|go)_[a-z0-9_]+|\bup\b`)

// scraped returns the address of the server's metrics.
func scraped(t *testing.T, s *server) string {
	t.Helper()
	found := regexp.MustCompile(`msg="serving metrics" address=http://([0-9.:]+)/metrics`)
	var m []string
	eventually(t, soon, "the server serves metrics", func() bool {
		m = found.FindStringSubmatch(s.Stderr.String())
		return m != nil
	})
	return m[1]
}

// prometheus is a running Prometheus.
type prometheus struct{ base string }

func startPrometheus(t *testing.T, bin, target string) prometheus {
	t.Helper()
	rules, err := filepath.Abs("../deploy/prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, `global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs: [{job_name: parley, static_configs: [{targets: [%q]}]}]
`, rules, target), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	background(t, filepath.Join(bin, "prometheus"), "--config.file", config, "--storage.tsdb.path",
		filepath.Join(dir, "data"), "--web.listen-address", addr, "--log.level", "warn")
	p := prometheus{"http://" + addr}
	eventually(t, soon, "Prometheus is ready", func() bool {
		res, err := http.Get(p.base + "/-/ready")
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	return p
}

// get calls the API of Prometheus.
func (p prometheus) get(t *testing.T, path string, data any) {
	t.Helper()
	res, err := http.Get(p.base + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var out struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil || out.Status != "success" {
		t.Fatalf("%s: %s %s %v", path, out.Status, out.Error, err)
	}
	if err := json.Unmarshal(out.Data, data); err != nil {
		t.Fatal(err)
	}
}

// query returns the result of a query.
func (p prometheus) query(t *testing.T, query string) []json.RawMessage {
	t.Helper()
	var data struct{ Result []json.RawMessage }
	p.get(t, "/api/v1/query?query="+url.QueryEscape(query), &data)
	return data.Result
}

// rules returns the queries of all rules, after each was evaluated without an error.
func (p prometheus) rules(t *testing.T) (queries []string) {
	t.Helper()
	eventually(t, soon, "all rules were evaluated", func() bool {
		var data struct {
			Groups []struct {
				Rules []struct{ Name, Query, Health, LastError string }
			}
		}
		p.get(t, "/api/v1/rules", &data)
		queries = nil
		for _, g := range data.Groups {
			for _, r := range g.Rules {
				if r.Health == "err" {
					t.Fatalf("the rule %s fails: %s", r.Name, r.LastError)
				}
				if r.Health != "ok" {
					return false
				}
				queries = append(queries, r.Query)
			}
		}
		return len(queries) > 0
	})
	return queries
}
