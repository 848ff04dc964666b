package config

import "github.com/alecthomas/kong"

// Help is a kong option that adds the help texts of the settings. They are not in the struct tags
// because a tag cannot be wrapped.
var Help = kong.PostBuild(func(k *kong.Kong) error {
	return kong.Visit(k.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok && flag.Help == "" && len(flag.Envs) > 0 {
			flag.Help = help[flag.Envs[0]]
		}
		return next(nil)
	})
})

// help has the help texts by environment variable.
var help = map[string]string{
	"PARLEY_DATA":     "Folder of the embedded SQLite store; ${default} if not given.",
	"PARLEY_DATABASE": "PostgreSQL to use instead of --data, as postgres://user:password@host/name.",
	"PARLEY_CONFIG":   `JSON file with settings, e.g. {"listen": "127.0.0.1:9000", "rate_limit": 50}.`,
	"PARLEY_SECRET_KEY_FILE": "File with the keys that encrypt secrets in the store, such as webhook secrets; secret.key in " +
		"the data folder if not given, which the first start makes. With --database there is no default.",
	"PARLEY_LISTEN":     "Address to listen on; port 0 takes a free port; ${default} if not given.",
	"PARLEY_PUBLIC_URL": "URL by which others reach this server, for links in responses.",
	"PARLEY_TRUSTED_PROXIES": "IP addresses or networks of proxies whose X-Forwarded-For is trusted, e.g. " +
		"10.0.0.0/8,::1.",
	"PARLEY_CORS_ORIGINS": "Web origins whose pages may call this server with bearer credentials, e.g. " +
		"https://app.example; * is any. Cookies of other origins are never accepted.",
	"PARLEY_TLS_CERT": "Certificate (PEM) to serve HTTPS with.",
	"PARLEY_TLS_KEY":  "Private key (PEM) of --tls-cert.",
	"PARLEY_ACME": "Domains of this server, separated by commas: it gets certificates for them from Let's Encrypt, or " +
		"--acme-directory, and renews them. It then listens on :443 unless --listen is given. You accept the terms of " +
		"the certificate authority.",
	"PARLEY_ACME_EMAIL":     "E-mail address for the certificate authority of --acme.",
	"PARLEY_ACME_DIRECTORY": "Directory URL of the certificate authority of --acme; ${default} if not given.",
	"PARLEY_ACME_CA":        "Certificates (PEM) to trust for --acme-directory, for a private certificate authority.",
	"PARLEY_ACME_HTTP_LISTEN": "Address on which challenges of --acme are answered over plain HTTP, and other requests " +
		"redirected to HTTPS; ${default} if not given, and off for none.",
	"PARLEY_RATE_LIMIT": "Requests per second of one principal, with bursts of five times as many; ${default} if " +
		"not given, and 0 turns the limit off.",
	"PARLEY_MAX_REQUESTS": "Concurrent requests, without streams and waiting requests; workers have a separate " +
		"limit of the same size. One principal may have half of them, one org two thirds. ${default} if not " +
		"given, and 0 turns the limit off.",
	"PARLEY_MAX_STREAMS": "Open streams, and the same number of waiting requests; ${default} if not given, and 0 " +
		"turns the limit off. The limit on open files can lower it.",
	"PARLEY_MAX_STREAMS_PER_PRINCIPAL": "Open streams of one principal, and the same number of waiting requests; " +
		"${default} if not given, and 0 turns the limit off.",
	"PARLEY_REQUEST_MEMORY": "Memory in MiB for all large requests and responses; a principal may use a quarter of " +
		"it and an org half; ${default} if not given, and 0 turns the limit off.",
	"PARLEY_SEARCH_TIMEOUT": "How long a search or another slow read may take, including the wait for its turn; " +
		"${default} if not given.",
	"PARLEY_DATABASE_REPLICA": "A replica of --database. Searches among tasks, counts for quotas and metrics use it " +
		"while it is at most 5 seconds behind; their data may be as old.",
	"PARLEY_DATABASE_CONNECTIONS": "Connections to PostgreSQL for requests, at least 2; slow reads use up to 4 " +
		"more, and health checks and notifications 3. ${default} if not given.",
	"PARLEY_DATABASE_STATEMENT_TIMEOUT": "How long one statement of a request may take on PostgreSQL; ${default} " +
		"if not given.",
	"PARLEY_DATABASE_LOCK_TIMEOUT": "How long a write may wait for rows that another transaction has locked; " +
		"${default} if not given.",
	"PARLEY_DATABASE_ACQUIRE_TIMEOUT": "How long a request may wait for a connection to PostgreSQL; ${default} if " +
		"not given.",
	"PARLEY_CARD_BINDINGS": "Bindings that the cards of agents advertise, the preferred one first: jsonrpc, " +
		"http+json and grpc, with at least one of the first two. All are served in any case; ADK refuses " +
		"cards with grpc. ${default} if not given.",
	"PARLEY_ECHO_AGENT":      "Run the built-in agent echo, which the first start registers in org main.",
	"PARLEY_TASK_RETENTION":  "How long a task is kept after its end; ${default} if not given, and 0 keeps all.",
	"PARLEY_EVENT_RETENTION": "How long an event is kept; ${default} if not given, and 0 keeps all.",
	"PARLEY_AUDIT_RETENTION": "How long an entry of the audit log is kept, 24h or more; ${default} if not given, and 0 " +
		"keeps all.",
	"PARLEY_FRICTION_RETENTION": "How long friction is kept after its last report, unless its proposal is open or " +
		"approved; ${default} if not given, and 0 keeps all.",
	"PARLEY_SESSION_RETENTION": "How long sessions and grants of programs are kept after their end; ${default} if not " +
		"given, and 0 deletes them within ten minutes.",
	"PARLEY_IDEMPOTENCY_RETENTION": "How long the outcome of an Idempotency-Key is kept; ${default} if not given.",
	"PARLEY_OUTBOUND_ALLOW": "Host, host:port, IP or network that this server may send requests to although it is not " +
		"public, also over http: webhooks, pushes and client documents; repeat it or separate by commas.",
	"PARLEY_PUSH":             "Push events of tasks to the URLs that their senders configure.",
	"PARLEY_PUSH_ALLOW":       "Like --outbound-allow, but for pushes only; deprecated.",
	"PARLEY_TOKEN_LIFETIME":   "How long an OAuth access token works; ${default} if not given.",
	"PARLEY_REFRESH_LIFETIME": "How long an unused OAuth refresh token works; ${default} if not given.",
	"PARLEY_CLIENT_DOCUMENTS": "Accept OAuth Client ID Metadata Documents: the URL of a JSON document as the " +
		"client id. The server reads it when a client sends a signed-in user.",
	"PARLEY_CLIENT_DOCUMENTS_ALLOW": "Like --outbound-allow, but for client documents only; deprecated.",
	"PARLEY_ISSUERS": "JSON file that describes other identity providers: people sign in with them, and their " +
		"access tokens are accepted.",
	"PARLEY_METRICS_LISTEN": "Address on which /metrics is served instead of --listen, over plain HTTP, e.g. " +
		"127.0.0.1:9090.",
	"PARLEY_DEBUG_LISTEN": "Private address on which profiles of the running program are served, e.g. 127.0.0.1:6060; " +
		"see /debug/pprof/ there.",
	"PARLEY_METRICS_KEY": "Bearer token that /metrics requires, 16 characters or more; better set as " +
		"PARLEY_METRICS_KEY, because other users of the machine can see flags.",
	"PARLEY_SHUTDOWN_DELAY": "How long /readyz fails before a stopping server refuses connections, so that load " +
		"balancers notice; 3s with --database and 0s without if not given.",
	"PARLEY_SHUTDOWN_TIMEOUT":     "How long a stopping server waits for running requests; ${default} if not given.",
	"PARLEY_LOG_FORMAT":           "Format of the log on stderr: text or json; ${default} if not given.",
	"PARLEY_LOG_LEVEL":            "Lowest level to log: debug, info, warn or error; ${default} if not given.",
	"PARLEY_ACCESS_LOG":           "Log every request.",
	"PARLEY_MAX_AGENTS":           "Agents of one org; ${default} if not given, and 0 is no limit, as for all quotas.",
	"PARLEY_MAX_PUBLIC_AGENTS":    "Public agent ids of one org; ${default} if not given.",
	"PARLEY_MAX_KEYS":             "Active keys of one org; ${default} if not given.",
	"PARLEY_MAX_PRINCIPAL_KEYS":   "Active keys of one principal; ${default} if not given.",
	"PARLEY_MAX_CLIENTS":          "OAuth clients registered by the admins of one org; ${default} if not given.",
	"PARLEY_MAX_INVITATIONS":      "Pending invitations of one org; ${default} if not given.",
	"PARLEY_MAX_LIVE_TASKS":       "Unfinished tasks of one sender; ${default} if not given.",
	"PARLEY_MAX_STORED_TASKS":     "Stored tasks of the agents of one org, finished or not; ${default} if not given.",
	"PARLEY_MAX_PUSH_CONFIGS":     "Active push configurations of one sender; ${default} if not given.",
	"PARLEY_MAX_ORG_PUSH_CONFIGS": "Active push configurations of all senders of one org; ${default} if not given.",
	"PARLEY_MAX_WEBHOOKS":         "Webhooks of one org; ${default} if not given.",
	"PARLEY_MAX_CALL_DEPTH":       "Calls of agents that may lead to a task, one after the other; ${default} if not given.",
	"PARLEY_MAX_WORKERS":          "Workers of one agent, by name; ${default} if not given.",
	"PARLEY_MAX_CARD_AGENTS":      "Agents on one page of the platform's card; from 1 to 1000; ${default} if not given.",
}
