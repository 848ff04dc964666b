package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// parse reads the settings as the serve command does.
func parse(t *testing.T, args ...string) (Config, error) {
	t.Helper()
	var cli struct {
		Serve struct {
			Config `embed:""`
		} `cmd:""`
	}
	k, err := kong.New(&cli, kong.Exit(func(int) { t.Fatal("exit") }))
	if err != nil {
		t.Fatal(err)
	}
	_, err = k.Parse(append([]string{"serve"}, args...))
	return cli.Serve.Config, err
}

func file(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "parley.json")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestTagsAndDefaultAgree(t *testing.T) {
	got, err := parse(t)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default(), got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("defaults differ (-Default +flags):\n%s", diff)
	}
}

func TestEachSourceOverridesTheOneBefore(t *testing.T) {
	name := file(t, `{"listen": "127.0.0.1:1", "rate_limit": 1, "access_log": true, "log_level": "warn",
		"trusted_proxies": ["10.0.0.0/8", "::1/128"], "shutdown_timeout": "5s",
		"push_allow": ["localhost", "10.1.2.3:9000"], "push": true}`)
	t.Setenv("PARLEY_LISTEN", "127.0.0.1:2")
	t.Setenv("PARLEY_RATE_LIMIT", "2")
	got, err := parse(t, "--config", name, "--rate-limit", "3", "--no-push")
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Config, want.Listen, want.RateLimit, want.AccessLog, want.LogLevel = name, "127.0.0.1:2", 3, true, "warn"
	want.ShutdownTimeout = 5 * time.Second
	want.TrustedProxies = []string{"10.0.0.0/8", "::1/128"}
	want.PushAllow, want.Push = []string{"localhost", "10.1.2.3:9000"}, false
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestListsAreRepeatedOrSeparatedByCommas(t *testing.T) {
	t.Setenv("PARLEY_PUSH_ALLOW", "a.example,10.0.0.0/8")
	got, err := parse(t)
	if diff := cmp.Diff([]string{"a.example", "10.0.0.0/8"}, got.PushAllow); diff != "" || err != nil {
		t.Errorf("error = %v, push allow list (-want +got):\n%s", err, diff)
	}
	got, err = parse(t, "--push-allow", "b.example:8080", "--push-allow", "::1,c.example")
	if diff := cmp.Diff([]string{"b.example:8080", "::1", "c.example"}, got.PushAllow); diff != "" || err != nil {
		t.Errorf("error = %v, push allow list (-want +got):\n%s", err, diff)
	}
}

func TestOutboundAllowIsASettingOfItsOwn(t *testing.T) {
	t.Setenv("PARLEY_OUTBOUND_ALLOW", "a.example,10.0.0.0/8")
	got, err := parse(t, "--push-allow", "b.example", "--client-documents-allow", "c.example", "--max-webhooks", "7")
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.OutboundAllow, want.PushAllow = []string{"a.example", "10.0.0.0/8"}, []string{"b.example"}
	want.ClientDocumentsAllow, want.MaxWebhooks = []string{"c.example"}, 7
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	name := file(t, `{"outbound_allow": ["d.example"], "max_webhooks": 0}`)
	got, err = parse(t, "--config", name, "--outbound-allow", "::1")
	if diff := cmp.Diff([]string{"::1"}, got.OutboundAllow); diff != "" || err != nil || got.MaxWebhooks != 0 {
		t.Errorf("error = %v, max webhooks = %d, allow list (-want +got):\n%s", err, got.MaxWebhooks, diff)
	}
}

func TestOriginsAreTaken(t *testing.T) {
	t.Parallel()
	c := Default()
	c.CORSOrigins = []string{"https://app.example", "http://localhost:3000", "http://[::1]:8080", "*"}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

func TestFileNamedByTheEnvironment(t *testing.T) {
	t.Setenv("PARLEY_CONFIG", file(t, `{"data": "elsewhere"}`))
	got, err := parse(t)
	if err != nil || got.Data != "elsewhere" {
		t.Errorf("data = %q, %v, want elsewhere", got.Data, err)
	}
}

func TestTheMoreExplicitStoreIsUsed(t *testing.T) {
	const url = "postgres://db/parley"
	inFile := file(t, `{"database": "postgres://db/parley"}`)
	tests := []struct {
		name string
		env  map[string]string
		args []string
		want Store
	}{
		{
			"a database in the environment",
			map[string]string{"PARLEY_DATABASE": url},
			nil,
			Store{Data: "./parley-data", Database: url},
		},
		{
			"a folder as a flag beats it",
			map[string]string{"PARLEY_DATABASE": url},
			[]string{"--data", "d"},
			Store{Data: "d"},
		},
		{
			"of two in the environment the database",
			map[string]string{"PARLEY_DATABASE": url, "PARLEY_DATA": "d"},
			nil,
			Store{Data: "d", Database: url},
		},
		{
			"a database as a flag beats a folder",
			map[string]string{"PARLEY_DATA": "d"},
			[]string{"--database", url},
			Store{Data: "d", Database: url},
		},
		{
			"a database in the file beats a folder in the environment, which packages set",
			map[string]string{"PARLEY_DATA": "d"},
			[]string{"--config", inFile},
			Store{Data: "d", Database: url, Config: inFile},
		},
		{
			"the file beats the default", nil,
			[]string{"--config", inFile},
			Store{Data: "./parley-data", Database: url, Config: inFile},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for k, v := range tt.env {
				t.Setenv(k, v)
			}
			got, err := parse(t, tt.args...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got.Store); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBadSettingsAreRefusedNotDefaulted(t *testing.T) {
	tests := []struct {
		name string
		args []string
		file string
		want string
	}{
		{name: "unknown key", file: `{"lisen": "127.0.0.1:1"}`, want: `unknown setting "lisen"`},
		{name: "repeated key", file: `{"data": "a", "data": "b"}`, want: `"data" is set twice`},
		{name: "not an object", file: `["data"]`, want: "must be a JSON object"},
		{name: "trailing text", file: `{"data": "a"} x`, want: "after the JSON object"},
		{name: "cut off", file: `{"data": "a"`, want: "EOF"},
		{name: "wrong type in file", file: `{"rate_limit": "many"}`, want: "rate-limit"},
		{name: "null", file: `{"rate_limit": null}`, want: "must be a string"},
		{name: "file names a file", file: `{"config": "b"}`, want: `unknown setting "config"`},
		{name: "missing file", args: []string{"--config", "no/such/file"}, want: "cannot read the configuration"},
		{
			name: "an origin with a path", args: []string{"--cors-origins=https://app.example/x"},
			want: "--cors-origins must be origins",
		},
		{
			name: "an origin without a scheme", args: []string{"--cors-origins=app.example"},
			want: "--cors-origins must be origins",
		},
		{
			name: "an origin with a wildcard", args: []string{"--cors-origins=https://*.example"},
			want: "--cors-origins must be origins",
		},
		{
			name: "an origin in capitals", args: []string{"--cors-origins=https://App.example"},
			want: "--cors-origins must be origins",
		},
		{name: "rate", args: []string{"--rate-limit=-1"}, want: "--rate-limit must be 0"},
		{name: "search timeout", args: []string{"--search-timeout=1ms"}, want: "--search-timeout must be between"},
		{name: "requests", args: []string{"--max-requests=-1"}, want: "--max-requests must be 0"},
		{name: "streams", args: []string{"--max-streams=-1"}, want: "--max-streams must be 0"},
		{
			name: "streams of one", args: []string{"--max-streams-per-principal=-1"},
			want: "--max-streams-per-principal must be 0",
		},
		{name: "fraction", args: []string{"--rate-limit=1.5"}, want: "--rate-limit"},
		{name: "listen", args: []string{"--listen", "localhost"}, want: "--listen must be HOST:PORT"},
		{name: "metrics listen", args: []string{"--metrics-listen", "9090"}, want: "--metrics-listen must be HOST:PORT"},
		{name: "debug listen", args: []string{"--debug-listen", "6060"}, want: "--debug-listen must be HOST:PORT"},
		{name: "debug listen on all", args: []string{"--debug-listen", ":6060"}, want: "must be a loopback or private"},
		{name: "debug listen in public", args: []string{"--debug-listen", "198.51.100.1:6060"}, want: "must be a loopback"},
		{name: "metrics key", args: []string{"--metrics-key", "hunter2"}, want: "--metrics-key must have 16"},
		{
			name: "metrics key with a space", args: []string{"--metrics-key", "hunter2 hunter2 hunter2"},
			want: "--metrics-key must have 16",
		},
		{name: "one half of TLS", args: []string{"--tls-cert", "a.pem"}, want: "--tls-cert and --tls-key go together"},
		{name: "log format", args: []string{"--log-format", "xml"}, want: "--log-format must be text or json"},
		{name: "log level", args: []string{"--log-level", "loud"}, want: "--log-level must be"},
		{name: "public url", args: []string{"--public-url", "parley.example"}, want: "--public-url must start with"},
		{name: "public url with path", args: []string{"--public-url", "https://a.example/x"}, want: "without path"},
		{
			name: "unknown binding", args: []string{"--card-bindings", "jsonrpc,soap"},
			want: `--card-bindings must name jsonrpc, http+json or grpc; it has "soap"`,
		},
		{
			name: "binding twice", args: []string{"--card-bindings", "jsonrpc,jsonrpc"},
			want: "--card-bindings names jsonrpc twice",
		},
		{
			name: "gRPC alone", args: []string{"--card-bindings", "grpc"},
			want: "--card-bindings must name jsonrpc or http+json",
		},
		{
			name: "no binding", args: []string{"--card-bindings", ""},
			want: "--card-bindings must name jsonrpc or http+json",
		},
		{name: "duration", args: []string{"--shutdown-timeout", "0s"}, want: "--shutdown-timeout must be more than 0"},
		{name: "delay", args: []string{"--shutdown-delay=-1s"}, want: "--shutdown-delay must not be negative"},
		{
			name: "pool", args: []string{"--database-connections=1"},
			want: "--database-connections must be between 2 and",
		},
		{
			name: "statement", args: []string{"--database-statement-timeout=1ms"},
			want: "--database-statement-timeout must be between",
		},
		{name: "lock", args: []string{"--database-lock-timeout=1h"}, want: "--database-lock-timeout must be between"},
		{
			name: "acquire", args: []string{"--database-acquire-timeout=0s"},
			want: "--database-acquire-timeout must be between",
		},
		{
			name: "database", args: []string{"--database", "mysql://root:hunter2@db/x"},
			want: "--database must be a URL that starts with postgres://",
		},
		{name: "two stores", args: []string{"--data", "d", "--database", "postgres://db/x"}, want: "exclude each other"},
		{name: "no folder", args: []string{"--data", ""}, want: "--data must name a folder"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args := tt.args
			if tt.file != "" {
				args = append(args, "--config", file(t, tt.file))
			}
			_, err := parse(t, args...)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error = %v, want one with %q", err, tt.want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error = %v, want no password in it", err)
			}
		})
	}
}

func TestEverySettingHasHelp(t *testing.T) {
	t.Parallel()
	k, err := kong.New(&struct {
		Config `embed:""`
	}{}, Help)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, flag := range k.Model.Flags {
		if len(flag.Envs) == 0 {
			continue // --help
		}
		if n++; flag.Help == "" || strings.Contains(flag.Help, "${") {
			t.Errorf("help of --%s = %q, want a text with its default", flag.Name, flag.Help)
		}
	}
	if n != len(help) {
		t.Errorf("settings = %d, help texts = %d, want the same number", n, len(help))
	}
}

// With PostgreSQL there may be several nodes, whose load balancer has to notice that one stops.
func TestTheDelayOfAShutdownDependsOnTheStore(t *testing.T) {
	for _, c := range []struct {
		args []string
		want time.Duration
	}{
		{nil, 0},
		{[]string{"--shutdown-delay", "1s"}, time.Second},
		{[]string{"--database", "postgres://db/x"}, 3 * time.Second},
		{[]string{"--database", "postgres://db/x", "--shutdown-delay", "0s"}, 0},
		{[]string{"--database", "postgres://db1:5432,db2:5432/x", "--shutdown-delay", "5s"}, 5 * time.Second},
	} {
		got, err := parse(t, c.args...)
		if err != nil {
			t.Fatal(err)
		}
		if got.StopDelay() != c.want {
			t.Errorf("%v: delay = %s, want %s", c.args, got.StopDelay(), c.want)
		}
	}
}

func TestMistypedEnvironmentIsPointedOut(t *testing.T) {
	got := UnknownEnv([]string{
		"PARLEY_LISTEM=x", "PARLEY_LISTEN=x", "PARLEY_KEY=x", "HOME=/", "PARLEY_CONFIG=x",
		"PARLEY_SERVICE_HOST=10.0.0.1", "PARLEY_PORT=tcp://10.0.0.1:80", "PARLEY_PORT_80_TCP_ADDR=10.0.0.1",
	})
	if diff := cmp.Diff([]string{"PARLEY_LISTEM"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestQuotasAreChecked(t *testing.T) {
	for flag, ok := range map[string]bool{
		"--max-agents=0": true, "--max-agents=-1": false, "--max-public-agents=-1": false, "--max-keys=-1": false,
		"--max-principal-keys=-1": false, "--max-clients=-1": false, "--max-invitations=-1": false,
		"--max-live-tasks=-1": false, "--max-stored-tasks=-1": false, "--max-push-configs=-1": false,
		"--max-org-push-configs=-1": false, "--max-workers=-1": false, "--max-webhooks=-1": false,
		"--max-card-agents=0": false, "--max-card-agents=1001": false,
		"--max-card-agents=10": true, "--max-call-depth=0": false, "--max-call-depth=65": false, "--max-call-depth=1": true,
	} {
		_, err := parse(t, flag) // kong validates
		name, _, _ := strings.Cut(flag, "=")
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), name+" ") {
			t.Errorf("%s: err = %v, want nil: %v", flag, err, ok)
		}
	}
}
