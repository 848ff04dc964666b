// Package config defines all settings of the server.
//
// The order of precedence, lowest first: default, the file named with --config, PARLEY_*
// environment variable, flag. Package cli reads the struct tags. Nothing here opens a store or a
// socket, so a bad value is rejected before anything changes.
package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

// Store selects the database. Every command that opens the database has these settings.
type Store struct {
	Data     string `default:"./parley-data" env:"PARLEY_DATA" placeholder:"DIR" group:"store"`
	Database string `env:"PARLEY_DATABASE" placeholder:"URL" group:"store"`
	Config   string `env:"PARLEY_CONFIG" placeholder:"FILE" group:"store"`

	SecretKeyFile string `env:"PARLEY_SECRET_KEY_FILE" placeholder:"FILE" group:"store"`
}

// KeyFile returns the file with the keys for secrets in the store. Beside a SQLite store there is one
// by default; with PostgreSQL there may be none.
func (s *Store) KeyFile() string {
	if s.SecretKeyFile == "" && s.Database == "" {
		return filepath.Join(s.Data, "secret.key")
	}
	return s.SecretKeyFile
}

// Config holds all settings of a server.
type Config struct {
	Store `embed:""`

	Listen         string   `default:"127.0.0.1:8080" env:"PARLEY_LISTEN" placeholder:"HOST:PORT"`
	PublicURL      string   `env:"PARLEY_PUBLIC_URL" placeholder:"URL"`
	TrustedProxies []string `env:"PARLEY_TRUSTED_PROXIES" placeholder:"CIDR"`
	CORSOrigins    []string `name:"cors-origins" env:"PARLEY_CORS_ORIGINS" placeholder:"ORIGIN"`
	TLSCert        string   `name:"tls-cert" env:"PARLEY_TLS_CERT" placeholder:"FILE"`
	TLSKey         string   `name:"tls-key" env:"PARLEY_TLS_KEY" placeholder:"FILE"`
	ACME           `embed:""`
	RateLimit      int `default:"100" env:"PARLEY_RATE_LIMIT" placeholder:"N"`

	MaxRequests            int           `default:"768" env:"PARLEY_MAX_REQUESTS" placeholder:"N"`
	MaxStreams             int           `default:"12000" env:"PARLEY_MAX_STREAMS" placeholder:"N"`
	MaxStreamsPerPrincipal int           `default:"1000" env:"PARLEY_MAX_STREAMS_PER_PRINCIPAL" placeholder:"N"`
	RequestMemory          int           `default:"160" env:"PARLEY_REQUEST_MEMORY" placeholder:"MIB"`
	SearchTimeout          time.Duration `default:"5s" env:"PARLEY_SEARCH_TIMEOUT" placeholder:"DURATION"`

	DatabaseReplica          string        `env:"PARLEY_DATABASE_REPLICA" placeholder:"URL" group:"store"`
	DatabaseConnections      int           `default:"20" env:"PARLEY_DATABASE_CONNECTIONS" placeholder:"N" group:"store"`
	DatabaseStatementTimeout time.Duration `default:"10s" env:"PARLEY_DATABASE_STATEMENT_TIMEOUT" placeholder:"DURATION" group:"store"`
	DatabaseLockTimeout      time.Duration `default:"3s" env:"PARLEY_DATABASE_LOCK_TIMEOUT" placeholder:"DURATION" group:"store"`
	DatabaseAcquireTimeout   time.Duration `default:"3s" env:"PARLEY_DATABASE_ACQUIRE_TIMEOUT" placeholder:"DURATION" group:"store"`

	CardBindings []string `default:"jsonrpc,http+json" env:"PARLEY_CARD_BINDINGS" placeholder:"BINDING"`

	EchoAgent     bool          `default:"true" env:"PARLEY_ECHO_AGENT" negatable:""`
	TaskRetention time.Duration `default:"720h" env:"PARLEY_TASK_RETENTION" placeholder:"DURATION"`

	EventRetention       time.Duration `default:"2160h" env:"PARLEY_EVENT_RETENTION" placeholder:"DURATION"`
	AuditRetention       time.Duration `default:"0s" env:"PARLEY_AUDIT_RETENTION" placeholder:"DURATION"`
	FrictionRetention    time.Duration `default:"0s" env:"PARLEY_FRICTION_RETENTION" placeholder:"DURATION"`
	SessionRetention     time.Duration `default:"0s" env:"PARLEY_SESSION_RETENTION" placeholder:"DURATION"`
	IdempotencyRetention time.Duration `default:"24h" env:"PARLEY_IDEMPOTENCY_RETENTION" placeholder:"DURATION"`

	// OutboundAllow is for every request to a URL that users configure. PushAllow and
	// ClientDocumentsAllow are its older forms for one kind of request.
	OutboundAllow []string `env:"PARLEY_OUTBOUND_ALLOW" placeholder:"ADDRESS"`

	Push      bool     `default:"true" env:"PARLEY_PUSH" negatable:""`
	PushAllow []string `env:"PARLEY_PUSH_ALLOW" placeholder:"ADDRESS"`

	TokenLifetime   time.Duration `default:"15m" env:"PARLEY_TOKEN_LIFETIME" placeholder:"DURATION"`
	RefreshLifetime time.Duration `default:"720h" env:"PARLEY_REFRESH_LIFETIME" placeholder:"DURATION"`

	ClientDocuments      bool     `default:"true" env:"PARLEY_CLIENT_DOCUMENTS" negatable:""`
	ClientDocumentsAllow []string `env:"PARLEY_CLIENT_DOCUMENTS_ALLOW" placeholder:"ADDRESS"`

	Issuers string `env:"PARLEY_ISSUERS" placeholder:"FILE"`

	MetricsListen string `env:"PARLEY_METRICS_LISTEN" placeholder:"HOST:PORT"`
	MetricsKey    string `env:"PARLEY_METRICS_KEY" placeholder:"TOKEN"`
	DebugListen   string `env:"PARLEY_DEBUG_LISTEN" placeholder:"HOST:PORT"`

	Quotas `embed:""`

	ShutdownDelay   *time.Duration `env:"PARLEY_SHUTDOWN_DELAY" placeholder:"DURATION"`
	ShutdownTimeout time.Duration  `default:"30s" env:"PARLEY_SHUTDOWN_TIMEOUT" placeholder:"DURATION"`

	LogFormat string `default:"text" env:"PARLEY_LOG_FORMAT" placeholder:"FORMAT"`
	LogLevel  string `default:"info" env:"PARLEY_LOG_LEVEL" placeholder:"LEVEL"`
	AccessLog bool   `default:"false" env:"PARLEY_ACCESS_LOG" negatable:""`
}

// Default returns the default settings. The tags above repeat them for the command line; a test
// keeps the two equal.
func Default() Config {
	return Config{
		Store: Store{Data: "./parley-data"}, Listen: "127.0.0.1:8080", RateLimit: 100, RequestMemory: 160,
		MaxRequests: 768, MaxStreams: 12_000, MaxStreamsPerPrincipal: 1000, SearchTimeout: 5 * time.Second,
		DatabaseConnections: 20, DatabaseStatementTimeout: 10 * time.Second,
		DatabaseLockTimeout: 3 * time.Second, DatabaseAcquireTimeout: 3 * time.Second,
		CardBindings: []string{"jsonrpc", "http+json"},
		EchoAgent:    true, TaskRetention: 30 * 24 * time.Hour, EventRetention: 90 * 24 * time.Hour,
		IdempotencyRetention: 24 * time.Hour,
		Push:                 true, ClientDocuments: true, Quotas: DefaultQuotas(), ACME: DefaultACME(),
		TokenLifetime: 15 * time.Minute, RefreshLifetime: 30 * 24 * time.Hour,
		ShutdownTimeout: 30 * time.Second, LogFormat: "text", LogLevel: "info",
	}
}

// Validate rejects a bad database URL or folder.
func (s *Store) Validate() error {
	if s.Database != "" {
		return checkPostgresURL("--database", s.Database)
	}
	if s.Data == "" {
		return errors.New("--data must name a folder")
	}
	return nil
}

func checkPostgresURL(flag, text string) error {
	u, err := url.Parse(text)
	// The parser's message would repeat the URL with its password.
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		return fmt.Errorf("%s must be a URL that starts with postgres://", flag)
	}
	return nil
}

// checkDebugListen accepts addresses that the internet cannot reach: a client that reads profiles sees
// the memory of the server, and can slow it down.
func checkDebugListen(addr string) error {
	if addr == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port == "" {
		return fmt.Errorf("--debug-listen must be HOST:PORT, for example 127.0.0.1:6060; it is %q", addr)
	}
	ip := net.ParseIP(host)
	if host != "localhost" && (ip == nil || !ip.IsLoopback() && !ip.IsPrivate()) {
		return fmt.Errorf("--debug-listen must be a loopback or private address, for example 127.0.0.1:6060, because it "+
			"shows the memory of the server; it is %q", addr)
	}
	return nil
}

// Validate rejects settings that cannot work. The error names the flag.
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
	if err := checkDebugListen(c.DebugListen); err != nil {
		return err
	}
	badKey := func(r rune) bool { return r <= ' ' || r > '~' }
	if c.MetricsKey != "" && (len(c.MetricsKey) < minMetricsKey || strings.ContainsFunc(c.MetricsKey, badKey)) {
		return fmt.Errorf("--metrics-key must have %d or more printable ASCII characters and no spaces", minMetricsKey)
	}
	if err := CheckPublicURL(c.PublicURL); err != nil {
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
	if err := errors.Join(checkCardBindings(c.CardBindings), c.Quotas.Validate(), c.validateDatabase(),
		c.validateRetention(), c.validateACME()); err != nil {
		return err
	}
	_, err := c.Level()
	return err
}

// validateDatabase rejects limits with which no request could succeed.
func (c *Config) validateDatabase() error {
	if c.DatabaseConnections < 2 || c.DatabaseConnections > 10_000 {
		return fmt.Errorf("--database-connections must be between 2 and 10000; it is %d", c.DatabaseConnections)
	}
	if c.DatabaseReplica != "" {
		if c.Database == "" {
			return errors.New("--database-replica needs --database, the database that it follows")
		}
		if err := checkPostgresURL("--database-replica", c.DatabaseReplica); err != nil {
			return err
		}
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

// validateRetention rejects negative durations, which would delete everything.
func (c *Config) validateRetention() error {
	for _, s := range []struct {
		flag  string
		value time.Duration
		zero  string
	}{
		{"task", c.TaskRetention, "keep all"},
		{"event", c.EventRetention, "keep all"},
		{"audit", c.AuditRetention, "keep all"},
		{"friction", c.FrictionRetention, "keep all"},
		{"session", c.SessionRetention, "delete them when they end"},
	} {
		if s.value < 0 {
			return fmt.Errorf("--%s-retention must be 0 (%s) or more; it is %s", s.flag, s.zero, s.value)
		}
	}
	if c.AuditRetention > 0 && c.AuditRetention < 24*time.Hour {
		return fmt.Errorf("--audit-retention must be 0 (keep all) or 24h or more; it is %s", c.AuditRetention)
	}
	if c.IdempotencyRetention < time.Minute || c.IdempotencyRetention > 30*24*time.Hour {
		return fmt.Errorf("--idempotency-retention must be between 1m and 720h; it is %s", c.IdempotencyRetention)
	}
	return nil
}

// StopDelay returns how long a stopping server still accepts connections. With PostgreSQL there may
// be several nodes, and the load balancer in front of them needs time to notice.
func (c *Config) StopDelay() time.Duration {
	switch {
	case c.ShutdownDelay != nil:
		return *c.ShutdownDelay
	case c.Database != "":
		return 3 * time.Second
	}
	return 0
}

// minMetricsKey is a length that cannot be guessed.
const minMetricsKey = 16

// minRequestMemory gives each principal a share that fits the largest task.
const minRequestMemory = 128

// checkCardBindings rejects unknown bindings, and lists without a binding for A2A 0.3: cards of
// that version cannot offer gRPC, although it is served.
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
		return fmt.Errorf("--card-bindings must name jsonrpc or http+json, perhaps with others; it is %q",
			strings.Join(bindings, ","))
	}
	return nil
}

// CheckPublicURL returns an error unless s is empty or a scheme and a host.
func CheckPublicURL(s string) error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return fmt.Errorf("--public-url must start with http:// or https:// and name a host; it is %q", s)
	case u.User != nil:
		return errors.New("--public-url must be a scheme and a host only, without a user and a password")
	case u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		return fmt.Errorf("--public-url must be a scheme and a host only, without path and query; it is %q", s)
	}
	return nil
}

// checkOrigin accepts * and the Origin header values of browsers.
func checkOrigin(s string) error {
	u, err := url.Parse(s)
	if s == "*" || err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" &&
		!strings.Contains(s, "*") && s == strings.ToLower(u.Scheme+"://"+u.Host) {
		return nil
	}
	return fmt.Errorf("--cors-origins must be origins such as https://app.example or http://localhost:3000, "+
		"in lower case and without a path, or *; it has %q", s)
}

// Level returns the log level.
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

// TLS reports whether the server serves HTTPS itself.
func (c *Config) TLS() bool { return c.TLSCert != "" || c.UsesACME() }
