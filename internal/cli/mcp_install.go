package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/mcp"
)

type mcpInstallCmd struct {
	whereFlags `embed:""`
	Client     string `help:"One of ${enum}." enum:"claude-desktop,claude-code,cursor,vscode,codex,generic" default:"generic"`
	OAuth      bool   `help:"Without a key: the client lets its user sign in, and acts for that user." name:"oauth"`
}

// Help is shown by --help.
func (mcpInstallCmd) Help() string {
	return "Prints the configuration on stdout, and on stderr where to put it. It writes no file and prints no key: " +
		"put yours in the marked place, or let the client sign you in (--oauth).\n\n" + examples(
		"parley mcp install --client cursor",
		"parley mcp install --client vscode --oauth",
		"parley mcp install --client codex >> ~/.codex/config.toml",
	)
}

// object is a JSON object with ordered members: name, value, name, value, …
type object []any

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i := 0; i+1 < len(o); i += 2 {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := json.Marshal(o[i])
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(o[i+1])
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

const keyPlaceholder = "YOUR_PARLEY_KEY"

func (c *mcpInstallCmd) Run(e *env) error {
	if err := c.resolve(); err != nil {
		return err
	}
	configure := c.withKey
	if c.OAuth {
		configure = c.withoutKey
	}
	where, config := configure(c.Server)
	if c.JSON {
		return e.printJSON(object{"client", c.Client, "where", where, "config", config})
	}
	fmt.Fprintln(e.stderr, where)
	if text, ok := config.(string); ok {
		_, err := fmt.Fprintln(e.stdout, strings.TrimSpace(clean(text)))
		return err
	}
	return e.printJSON(config)
}

// withKey returns the configuration of a client that sends a key.
func (c *mcpInstallCmd) withKey(server string) (where string, config any) {
	url := server + mcp.Path
	stdio := object{
		"command", "parley",
		"args",
		[]string{"mcp", "--server", server},
		"env",
		object{"PARLEY_KEY", keyPlaceholder},
	}
	header := func(key string) object { return object{"Authorization", "Bearer " + key} }
	switch c.Client {
	case "claude-code":
		where = "Run this; Claude Code stores the key that PARLEY_KEY has now:"
		config = "claude mcp add --transport http parley " + app.ShellQuote(url) +
			` --header "Authorization: Bearer $PARLEY_KEY"`
	case "claude-desktop":
		where = "Claude Desktop sends no header, so it runs parley. Add this to claude_desktop_config.json " +
			"(Settings > Developer > Edit Config), with your key and, if parley is not on its PATH, the path of the program:"
		config = object{"mcpServers", object{"parley", stdio}}
	case "cursor":
		where = "Add this to ~/.cursor/mcp.json, or to .cursor/mcp.json of a project; the key is read from PARLEY_KEY:"
		config = object{"mcpServers", object{"parley", object{"url", url, "headers", header("${env:PARLEY_KEY}")}}}
	case "vscode":
		where = "Add this to .vscode/mcp.json, or to the user's (command \"MCP: Open User Configuration\"); " +
			"VS Code asks for the key and stores it:"
		config = object{
			"inputs",
			[]object{{"type", "promptString", "id", "parley-key", "description", "Parley API key", "password", true}},
			"servers",
			object{"parley", object{"type", "http", "url", url, "headers", header("${input:parley-key}")}},
		}
	case "codex":
		where = "Add this to ~/.codex/config.toml; the key is read from PARLEY_KEY:"
		config = codex(url) + "bearer_token_env_var = \"PARLEY_KEY\"\n"
	default:
		where = "Use the first for a client that speaks streamable HTTP, the second for one that runs a program; " +
			"replace " + keyPlaceholder + " with your key:"
		config = object{"mcpServers", object{
			"parley",
			object{"type", "http", "url", url, "headers", header(keyPlaceholder)},
			"parley-stdio", stdio,
		}}
	}
	return where, config
}

// withoutKey returns the configuration of a client that discovers the authorization server.
func (c *mcpInstallCmd) withoutKey(server string) (where string, config any) {
	url := server + mcp.Path
	http := object{"parley", object{"type", "http", "url", url}}
	switch c.Client {
	case "claude-code":
		where = "Run this, then /mcp in Claude Code to sign in:"
		config = "claude mcp add --transport http parley " + app.ShellQuote(url)
	case "claude-desktop":
		where = "If the server can be reached from the internet, add its URL in Settings > Connectors > Add custom " +
			"connector. Otherwise run parley login, and add this to claude_desktop_config.json:"
		stdio := object{"command", "parley", "args", []string{"mcp", "--server", server}}
		config = object{"mcpServers", object{"parley", stdio}}
	case "cursor":
		where = "Add this to ~/.cursor/mcp.json, or to .cursor/mcp.json of a project; Cursor asks you to sign in:"
		config = object{"mcpServers", object{"parley", object{"url", url}}}
	case "vscode":
		where = "Add this to .vscode/mcp.json, or to the user's (command \"MCP: Open User Configuration\"); " +
			"VS Code asks you to sign in:"
		config = object{"servers", http}
	case "codex":
		where = "Add this to ~/.codex/config.toml, then run: codex mcp login parley"
		config = codex(url)
	default:
		where = "A client that supports OAuth needs only the URL:"
		config = object{"mcpServers", http}
	}
	return where, config
}

// codex returns the start of a TOML configuration. A TOML string of these characters is
// written as in JSON.
func codex(url string) string { return "[mcp_servers.parley]\nurl = " + strconv.Quote(url) + "\n" }
