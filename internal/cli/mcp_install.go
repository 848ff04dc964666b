package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/parley-dev/parley/internal/mcp"
)

type mcpInstallCmd struct {
	jsonFlag `embed:""`

	Client string `help:"claude-desktop, claude-code, cursor, vscode, codex or generic (default)." enum:"claude-desktop,claude-code,cursor,vscode,codex,generic" default:"generic" placeholder:"CLIENT"`
	OAuth  bool   `help:"Without a key: the client asks its person in the browser, and acts for that person." name:"oauth"`
	Server string `help:"Address of the server; ${default} if not given." default:"http://127.0.0.1:8080" env:"PARLEY_SERVER" placeholder:"URL" group:"server"`
}

// Help is shown by --help.
func (mcpInstallCmd) Help() string {
	return "Prints the configuration on stdout and where it goes on stderr. Nothing is written, and no key is printed: put yours where it says, or let the client sign you in (--oauth).\n\n" +
		examples("parley mcp install --client cursor", "parley mcp install --client vscode --oauth", "parley mcp install --client codex >> ~/.codex/config.toml")
}

// object is a JSON object whose members keep their order, by a name before each value.
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
	if err := checkServer(c.Server); err != nil {
		return err
	}
	configure := c.withKey
	if c.OAuth {
		configure = c.withoutKey
	}
	where, config := configure(strings.TrimRight(c.Server, "/"))
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

// withKey is the configuration of a client that sends a key.
func (c *mcpInstallCmd) withKey(server string) (where string, config any) {
	url := server + mcp.Path
	stdio := object{"command", "parley", "args", []string{"mcp", "--server", server}, "env", object{"PARLEY_KEY", keyPlaceholder}}
	header := func(key string) object { return object{"Authorization", "Bearer " + key} }
	switch c.Client {
	case "claude-code":
		where = "Run this; the key is read from PARLEY_KEY now and kept by Claude Code:"
		config = fmt.Sprintf(`claude mcp add --transport http parley %s --header "Authorization: Bearer $PARLEY_KEY"`, shellQuote(url))
	case "claude-desktop":
		where = "Claude Desktop takes no header, so parley runs beside it. Add this to claude_desktop_config.json (Settings > Developer > Edit Config), with your key and, if parley is not on its PATH, the full path of the program:"
		config = object{"mcpServers", object{"parley", stdio}}
	case "cursor":
		where = "Add this to ~/.cursor/mcp.json, or to .cursor/mcp.json of a project; the key is read from PARLEY_KEY:"
		config = object{"mcpServers", object{"parley", object{"url", url, "headers", header("${env:PARLEY_KEY}")}}}
	case "vscode":
		where = "Add this to .vscode/mcp.json, or to the user's (command \"MCP: Open User Configuration\"); VS Code asks for the key and keeps it:"
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
		where = "A client that speaks streamable HTTP takes the first, one that runs a program the second; put your key where it says " + keyPlaceholder + ":"
		config = object{"mcpServers", object{
			"parley",
			object{"type", "http", "url", url, "headers", header(keyPlaceholder)},
			"parley-stdio", stdio,
		}}
	}
	return where, config
}

// withoutKey is that of a client which finds the authorization server by itself.
func (c *mcpInstallCmd) withoutKey(server string) (where string, config any) {
	url := server + mcp.Path
	http := object{"parley", object{"type", "http", "url", url}}
	switch c.Client {
	case "claude-code":
		where = "Run this, then /mcp in Claude Code to sign in:"
		config = "claude mcp add --transport http parley " + shellQuote(url)
	case "claude-desktop":
		where = "Add this address in Settings > Connectors > Add custom connector, if the server can be reached from the internet; else run parley login, and add this to claude_desktop_config.json:"
		config = object{"mcpServers", object{"parley", object{"command", "parley", "args", []string{"mcp", "--server", server}}}}
	case "cursor":
		where = "Add this to ~/.cursor/mcp.json, or to .cursor/mcp.json of a project; Cursor asks you to sign in:"
		config = object{"mcpServers", object{"parley", object{"url", url}}}
	case "vscode":
		where = "Add this to .vscode/mcp.json, or to the user's (command \"MCP: Open User Configuration\"); VS Code asks you to sign in:"
		config = object{"servers", http}
	case "codex":
		where = "Add this to ~/.codex/config.toml, then run: codex mcp login parley"
		config = codex(url)
	default:
		where = "A client that knows OAuth needs the address alone:"
		config = object{"mcpServers", http}
	}
	return where, config
}

// codex is the beginning of a configuration in TOML, where a string of such characters
// is written as in JSON.
func codex(url string) string { return "[mcp_servers.parley]\nurl = " + strconv.Quote(url) + "\n" }

// shellQuote protects what a shell would take apart.
func shellQuote(s string) string {
	if strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(":/.-_[]%", r))
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
