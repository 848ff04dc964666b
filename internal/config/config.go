// Package config is what an operator can set, in one place.
//
// Each setting has a default, and is overridden by the file named with --config,
// then by its PARLEY_* environment variable, then by its flag. The struct tags are
// read by package cli; nothing here opens a store or a socket, so a wrong value is
// refused before anything is touched.
package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"
)

// Store says where the data is. Every command that works on the data itself has
// these settings.
type Store struct {
	Data     string `help:"Folder of the embedded SQLite store; ${default} if not given." default:"./parley-data" env:"PARLEY_DATA" placeholder:"DIR" group:"store"`
	Database string `help:"PostgreSQL to use instead of --data, as postgres://user:password@host/name." env:"PARLEY_DATABASE" placeholder:"URL" group:"store"`
	Config   string `help:"JSON file with settings, e.g. {\"listen\": \"127.0.0.1:9000\", \"rate_limit\": 50}." env:"PARLEY_CONFIG" placeholder:"FILE" group:"store"`
}

// Config is every setting of a server.
type Config struct {
	Store `embed:""`

	Listen         string   `help:"Address to listen on; port 0 takes a free one; ${default} if not given." default:"127.0.0.1:8080" env:"PARLEY_LISTEN" placeholder:"HOST:PORT"`
	PublicURL      string   `help:"Address by which others reach this server, for links in answers." env:"PARLEY_PUBLIC_URL" placeholder:"URL"`
	TrustedProxies []string `help:"Addresses or networks of proxies whose X-Forwarded-For is believed, e.g. 10.0.0.0/8,::1." env:"PARLEY_TRUSTED_PROXIES" placeholder:"CIDR"`
	CORSOrigins    []string `help:"Web origins whose pages may call this server with bearer credentials, e.g. https://app.example; * is any. Cookies are never taken from other origins." name:"cors-origins" env:"PARLEY_CORS_ORIGINS" placeholder:"ORIGIN"`
	TLSCert        string   `help:"Certificate (PEM) to serve HTTPS with." name:"tls-cert" env:"PARLEY_TLS_CERT" placeholder:"FILE"`
	TLSKey         string   `help:"Private key (PEM) of --tls-cert." name:"tls-key" env:"PARLEY_TLS_KEY" placeholder:"FILE"`
	RateLimit      int      `help:"Requests per second that one principal may make, in bursts of five times as many; ${default} if not given, and 0 turns the limit off." default:"100" env:"PARLEY_RATE_LIMIT" placeholder:"N"`

	MaxRequests            int           `help:"Requests that are served at the same time, apart from streams and requests that wait; workers have as many of their own. One principal may have half of them, one org two thirds. ${default} if not given, and 0 turns the limit off." default:"768" env:"PARLEY_MAX_REQUESTS" placeholder:"N"`
	MaxStreams             int           `help:"Open streams, and as many requests that wait; ${default} if not given, and 0 turns the limit off. The limit on open files can lower it." default:"12000" env:"PARLEY_MAX_STREAMS" placeholder:"N"`
	MaxStreamsPerPrincipal int           `help:"Open streams of one principal, and as many requests that wait; ${default} if not given, and 0 turns the limit off." default:"1000" env:"PARLEY_MAX_STREAMS_PER_PRINCIPAL" placeholder:"N"`
	RequestMemory          int           `help:"Memory in MiB that large requests and responses may hold together; a principal has a quarter of it and an org half; ${default} if not given, and 0 turns the limit off." default:"160" env:"PARLEY_REQUEST_MEMORY" placeholder:"MIB"`
	SearchTimeout          time.Duration `help:"How long a search or another slow read may take, waiting for its turn included; ${default} if not given." default:"5s" env:"PARLEY_SEARCH_TIMEOUT" placeholder:"DURATION"`

	DatabaseConnections      int           `help:"Connections to PostgreSQL for requests, at least 2; slow reads have up to 4 more, and health checks and hints 3. ${default} if not given." default:"20" env:"PARLEY_DATABASE_CONNECTIONS" placeholder:"N" group:"store"`
	DatabaseStatementTimeout time.Duration `help:"How long one statement of a request may take on PostgreSQL; ${default} if not given." default:"10s" env:"PARLEY_DATABASE_STATEMENT_TIMEOUT" placeholder:"DURATION" group:"store"`
	DatabaseLockTimeout      time.Duration `help:"How long a write may wait for rows that another transaction has locked; ${default} if not given." default:"3s" env:"PARLEY_DATABASE_LOCK_TIMEOUT" placeholder:"DURATION" group:"store"`
	DatabaseAcquireTimeout   time.Duration `help:"How long a request may wait for a connection to PostgreSQL; ${default} if not given." default:"3s" env:"PARLEY_DATABASE_ACQUIRE_TIMEOUT" placeholder:"DURATION" group:"store"`

	CardBindings []string `help:"Bindings that the cards of agents advertise, the preferred one first: jsonrpc, http+json and grpc, one of the first two among them. All are served in any case; ADK refuses cards that name grpc. ${default} if not given." default:"jsonrpc,http+json" env:"PARLEY_CARD_BINDINGS" placeholder:"BINDING"`

	EchoAgent     bool          `help:"Run the built-in agent echo, which the first start registers in org main." default:"true" env:"PARLEY_ECHO_AGENT" negatable:""`
	TaskRetention time.Duration `help:"How long a task is kept after it ended; ${default} if not given, and 0 keeps all." default:"720h" env:"PARLEY_TASK_RETENTION" placeholder:"DURATION"`

	Push      bool     `help:"Push events of tasks to the addresses that their senders name." default:"true" env:"PARLEY_PUSH" negatable:""`
	PushAllow []string `help:"Host, host:port, IP or network that events may be pushed to although it is not public, also over http; repeat it or separate by commas." env:"PARLEY_PUSH_ALLOW" placeholder:"ADDRESS"`

	TokenLifetime   time.Duration `help:"How long an OAuth access token works; ${default} if not given." default:"15m" env:"PARLEY_TOKEN_LIFETIME" placeholder:"DURATION"`
	RefreshLifetime time.Duration `help:"How long an OAuth refresh token works that is not used; ${default} if not given." default:"720h" env:"PARLEY_REFRESH_LIFETIME" placeholder:"DURATION"`

	ClientDocuments      bool     `help:"Let programs name themselves by the address of a document that describes them, which the server reads when somebody who is signed in is sent by one." default:"true" env:"PARLEY_CLIENT_DOCUMENTS" negatable:""`
	ClientDocumentsAllow []string `help:"Host, host:port, IP or network that such documents may be read from although it is not public; repeat it or separate by commas." env:"PARLEY_CLIENT_DOCUMENTS_ALLOW" placeholder:"ADDRESS"`

	Issuers string `help:"JSON file that describes other identity providers: people sign in with them, and their access tokens are taken." env:"PARLEY_ISSUERS" placeholder:"FILE"`

	MetricsListen string `help:"Address on which /metrics is served instead of --listen, over plain HTTP, e.g. 127.0.0.1:9090." env:"PARLEY_METRICS_LISTEN" placeholder:"HOST:PORT"`
	MetricsKey    string `help:"Bearer token that /metrics requires, 16 characters or more; better given as PARLEY_METRICS_KEY, because other users of the machine can see flags." env:"PARLEY_METRICS_KEY" placeholder:"TOKEN"`

	Quotas `embed:""`

	ShutdownDelay   *time.Duration `help:"How long /readyz fails before a stopping server refuses connections, so that load balancers notice; if not given, 3s with --database and 0s without." env:"PARLEY_SHUTDOWN_DELAY" placeholder:"DURATION"`
	ShutdownTimeout time.Duration  `help:"How long a stopping server waits for requests in flight; ${default} if not given." default:"30s" env:"PARLEY_SHUTDOWN_TIMEOUT" placeholder:"DURATION"`

	LogFormat string `help:"Form of the log on stderr: text or json; ${default} if not given." default:"text" env:"PARLEY_LOG_FORMAT" placeholder:"FORMAT"`
	LogLevel  string `help:"Least severe lines to log: debug, info, warn or error; ${default} if not given." default:"info" env:"PARLEY_LOG_LEVEL" placeholder:"LEVEL"`
	AccessLog bool   `help:"Log every request." default:"false" env:"PARLEY_ACCESS_LOG" negatable:""`
}

// Default returns the settings of a server that nobody configured. The tags above
// repeat them for the command line; a test keeps the two together.
func Default() Config {
	return Config{
		Store: Store{Data: "./parley-data"}, Listen: "127.0.0.1:8080", RateLimit: 100, RequestMemory: 160,
		MaxRequests: 768, MaxStreams: 12_000, MaxStreamsPerPrincipal: 1000, SearchTimeout: 5 * time.Second,
		DatabaseConnections: 20, DatabaseStatementTimeout: 10 * time.Second,
		DatabaseLockTimeout: 3 * time.Second, DatabaseAcquireTimeout: 3 * time.Second,
		CardBindings: []string{"jsonrpc", "http+json"},
		EchoAgent:    true, TaskRetention: 30 * 24 * time.Hour, Push: true, ClientDocuments: true, Quotas: DefaultQuotas(),
		TokenLifetime: 15 * time.Minute, RefreshLifetime: 30 * 24 * time.Hour,
		ShutdownTimeout: 30 * time.Second, LogFormat: "text", LogLevel: "info",
	}
}

// Validate refuses a store that cannot be meant.
func (s *Store) Validate() error {
	if s.Database != "" {
		u, err := url.Parse(s.Database)
		// The parser's own message would repeat the URL, password and all.
		if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
			return errors.New("--database must be a URL that starts with postgres://")
		}
		return nil
	}
	if s.Data == "" {
		return errors.New("--data must name a folder")
	}
	return nil
}

// Validate refuses settings that cannot work, in words that name the flag.
func (c *Config) Validate() error {
	if err := c.Store.Validate(); err != nil {
		return err
	}
	if _, port, err := net.SplitHostPort(c.Listen); err != nil || port == "" {
		return fmt.Errorf("--listen must be HOST:PORT, for example 127.0.0.1:8080; it is %q", c.Listen)
	}
	if _, port, err := net.SplitHostPort(c.MetricsListen); c.MetricsListen != "" && (err != nil || port == "") {
		return fmt.Errorf("--metrics-listen must be HOST:PORT, for example 127.0.0.1:9090; it is %q", c.MetricsListen)
	}
	if c.MetricsKey != "" && (len(c.MetricsKey) < minMetricsKey || strings.ContainsFunc(c.MetricsKey, func(r rune) bool { return r <= ' ' || r > '~' })) {
		return fmt.Errorf("--metrics-key must have %d or more printable ASCII characters and no spaces", minMetricsKey)
	}
	if err := checkPublicURL(c.PublicURL); err != nil {
		return err
	}
	for _, origin := range c.CORSOrigins {
		if err := checkOrigin(origin); err != nil {
			return err
		}
	}
	switch {
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return errors.New("--tls-cert and --tls-key go together: give both or none")
	case c.RateLimit < 0:
		return fmt.Errorf("--rate-limit must be 0 (off) or more; it is %d", c.RateLimit)
	case c.MaxRequests < 0:
		return fmt.Errorf("--max-requests must be 0 (off) or more; it is %d", c.MaxRequests)
	case c.MaxStreams < 0:
		return fmt.Errorf("--max-streams must be 0 (off) or more; it is %d", c.MaxStreams)
	case c.MaxStreamsPerPrincipal < 0:
		return fmt.Errorf("--max-streams-per-principal must be 0 (off) or more; it is %d", c.MaxStreamsPerPrincipal)
	case c.RequestMemory < 0 || c.RequestMemory > 0 && c.RequestMemory < minRequestMemory:
		return fmt.Errorf("--request-memory must be 0 (no limit) or at least %d; it is %d", minRequestMemory, c.RequestMemory)
	case c.SearchTimeout < 100*time.Millisecond || c.SearchTimeout > time.Minute:
		return fmt.Errorf("--search-timeout must be between 100ms and 1m; it is %s", c.SearchTimeout)
	case c.TaskRetention < 0:
		return fmt.Errorf("--task-retention must be 0 (keep all) or more; it is %s", c.TaskRetention)
	case c.TokenLifetime < time.Minute || c.TokenLifetime > 24*time.Hour:
		return fmt.Errorf("--token-lifetime must be between 1m and 24h; it is %s", c.TokenLifetime)
	case c.RefreshLifetime < c.TokenLifetime:
		return fmt.Errorf("--refresh-lifetime must be --token-lifetime or more; it is %s", c.RefreshLifetime)
	case c.ShutdownTimeout <= 0:
		return fmt.Errorf("--shutdown-timeout must be more than 0; it is %s", c.ShutdownTimeout)
	case c.StopDelay() < 0:
		return fmt.Errorf("--shutdown-delay must not be negative; it is %s", c.StopDelay())
	case c.LogFormat != "text" && c.LogFormat != "json":
		return fmt.Errorf("--log-format must be text or json; it is %q", c.LogFormat)
	}
	if err := errors.Join(checkCardBindings(c.CardBindings), c.Quotas.Validate(), c.validateDatabase()); err != nil {
		return err
	}
	_, err := c.Level()
	return err
}

// validateDatabase refuses limits with which no request could succeed.
func (c *Config) validateDatabase() error {
	if c.DatabaseConnections < 2 || c.DatabaseConnections > 10_000 {
		return fmt.Errorf("--database-connections must be between 2 and 10000; it is %d", c.DatabaseConnections)
	}
	for _, s := range []struct {
		flag  string
		value time.Duration
	}{
		{"statement", c.DatabaseStatementTimeout}, {"lock", c.DatabaseLockTimeout}, {"acquire", c.DatabaseAcquireTimeout},
	} {
		if s.value < 100*time.Millisecond || s.value > 30*time.Second {
			return fmt.Errorf("--database-%s-timeout must be between 100ms and 30s; it is %s", s.flag, s.value)
		}
	}
	return nil
}

// StopDelay is how long a stopping server still accepts connections. Several nodes
// share a PostgreSQL, and the balancer in front of them has to notice.
func (c *Config) StopDelay() time.Duration {
	switch {
	case c.ShutdownDelay != nil:
		return *c.ShutdownDelay
	case c.Database != "":
		return 3 * time.Second
	}
	return 0
}

// minMetricsKey keeps the key from being guessed.
const minMetricsKey = 16

// minRequestMemory gives a principal a share that holds one largest task.
const minRequestMemory = 128

// checkCardBindings refuses bindings that do not exist, and cards without one for version
// 0.3 of A2A, which gRPC does not serve.
func checkCardBindings(bindings []string) error {
	seen := map[string]bool{}
	for _, b := range bindings {
		switch {
		case b != "jsonrpc" && b != "http+json" && b != "grpc":
			return fmt.Errorf("--card-bindings must name jsonrpc, http+json or grpc; it has %q", b)
		case seen[b]:
			return fmt.Errorf("--card-bindings names %s twice", b)
		}
		seen[b] = true
	}
	if !seen["jsonrpc"] && !seen["http+json"] {
		return fmt.Errorf("--card-bindings must name jsonrpc or http+json, perhaps beside others; it is %q", strings.Join(bindings, ","))
	}
	return nil
}

func checkPublicURL(s string) error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return fmt.Errorf("--public-url must start with http:// or https:// and name a host; it is %q", s)
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil || strings.Trim(u.Path, "/") != "":
		return fmt.Errorf("--public-url must be a scheme and a host only, without path, query or user; it is %q", s)
	}
	return nil
}

// checkOrigin accepts what a browser sends as Origin, and *.
func checkOrigin(s string) error {
	u, err := url.Parse(s)
	if s == "*" || err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" && s == strings.ToLower(u.Scheme+"://"+u.Host) {
		return nil
	}
	return fmt.Errorf("--cors-origins must be origins such as https://app.example or http://localhost:3000, in lower case and without a path, or *; it has %q", s)
}

// Level is the log level as slog knows it.
func (c *Config) Level() (slog.Level, error) {
	switch c.LogLevel {
	case "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, fmt.Errorf("--log-level must be debug, info, warn or error; it is %q", c.LogLevel)
}

// TLS reports whether the server itself speaks HTTPS.
func (c *Config) TLS() bool { return c.TLSCert != "" }
