package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/parley-dev/parley/internal/mcp"
)

type mcpInstallCmd struct {
	jsonFlag `embed:""`

	Client string `help:"claude-desktop, claude-code, cursor, vscode, codex or generic (default)." enum:"claude-desktop,claude-code,cursor,vscode,codex,generic" default:"generic" placeholder:"CLIENT"`
	Server string `help:"Address of the server; ${default} if not given." default:"http://127.0.0.1:8080" env:"PARLEY_SERVER" placeholder:"URL" group:"server"`
}

// Help is shown by --help.
func (mcpInstallCmd) Help() string {
	return "Prints the configuration on stdout and where it goes on stderr. Nothing is written, and no key is printed: put yours where it says.\n\n" +
		examples("parley mcp install --client cursor", "parley mcp install --client codex >> ~/.codex/config.toml")
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
	server := strings.TrimRight(c.Server, "/")
	url := server + mcp.Path
	stdio := object{"command", "parley", "args", []string{"mcp", "--server", server}, "env", object{"PARLEY_KEY", keyPlaceholder}}
	header := func(key string) object { return object{"Authorization", "Bearer " + key} }
	var where string
	var config any
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
		quoted, err := json.Marshal(url) // a TOML string of such characters is the same
		if err != nil {
			return err
		}
		config = "[mcp_servers.parley]\nurl = " + string(quoted) + "\nbearer_token_env_var = \"PARLEY_KEY\"\n"
	default:
		where = "A client that speaks streamable HTTP takes the first, one that runs a program the second; put your key where it says " + keyPlaceholder + ":"
		config = object{"mcpServers", object{
			"parley",
			object{"type", "http", "url", url, "headers", header(keyPlaceholder)},
			"parley-stdio", stdio,
		}}
	}
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

// shellQuote protects what a shell would take apart.
func shellQuote(s string) string {
	if strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(":/.-_[]%", r))
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
