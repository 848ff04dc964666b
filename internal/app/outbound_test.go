package app

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/config"
)

func TestABadAllowListIsRefusedBeforeTheDataIsTouched(t *testing.T) {
	t.Parallel()
	for flag, set := range map[string]func(*config.Config, []string){
		"--outbound-allow":         func(c *config.Config, list []string) { c.OutboundAllow = list },
		"--push-allow":             func(c *config.Config, list []string) { c.PushAllow = list },
		"--client-documents-allow": func(c *config.Config, list []string) { c.ClientDocumentsAllow = list },
	} {
		cfg := testConfig(t)
		cfg.Data = filepath.Join(cfg.Data, "new")
		set(&cfg, []string{"10.0.0.0/8", "http://x.example"})
		_, err := New(t.Context(), cfg, slog.New(slog.DiscardHandler))
		if err == nil || !strings.HasPrefix(err.Error(), flag+`: "http://x.example" is neither`) {
			t.Errorf("%s: error = %v", flag, err)
		}
		if _, err := os.Stat(cfg.Data); !os.IsNotExist(err) {
			t.Errorf("%s: the data folder was made: %v", flag, err)
		}
	}
}

// --outbound-allow is for every kind of request, the older settings are for one kind each.
func TestWhichSettingAllowsWhat(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.OutboundAllow, cfg.PushAllow = []string{"10.0.0.1"}, []string{"10.0.0.2"}
	cfg.ClientDocumentsAllow = []string{"10.0.0.3"}
	s := startServer(t, cfg)
	t.Cleanup(func() { _ = s.Shutdown() })
	documents, err := s.clientDocuments()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind  string
		check func(string) error
		want  []string
	}{
		{"pushes", s.pusher.CheckURL, []string{"10.0.0.1", "10.0.0.2"}},
		{"client documents", documents.Check, []string{"10.0.0.1", "10.0.0.3"}},
	} {
		for _, ip := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"} {
			err := c.check("https://" + ip + "/x")
			if want := slices.Contains(c.want, ip); (err == nil) != want {
				t.Errorf("%s to %s: error = %v, want allowed: %v", c.kind, ip, err, want)
			}
			if err != nil && !strings.HasSuffix(err.Error(), "an operator can allow it with --outbound-allow") {
				t.Errorf("%s to %s: %v, want it to name --outbound-allow", c.kind, ip, err)
			}
		}
	}
}
