package cli

import (
	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/mcp"
)

type mcpCmd struct {
	Serve   mcpServeCmd   `cmd:"" default:"withargs" help:"Serve the tools on stdin and stdout; parley mcp alone does this."`
	Install mcpInstallCmd `cmd:"" help:"Print how to connect an MCP client."`
}

// Help is shown by parley mcp --help.
func (mcpCmd) Help() string {
	return examples("parley mcp", "parley mcp install --client claude-code",
		"parley mcp install --client vscode --server https://parley.example")
}

type mcpServeCmd struct {
	whereFlags `embed:""` // --json is accepted; the protocol is JSON in any case
	Key        string     `help:"${key}." env:"PARLEY_KEY" placeholder:"KEY" group:"server"`
}

// Help is shown by --help.
func (mcpServeCmd) Help() string {
	return "Needs PARLEY_KEY, or a login at the server (parley login). Ends with its input. Errors go to stderr.\n\n" +
		examples("parley mcp --server https://parley.example")
}

func (c *mcpServeCmd) Run(e *env) error {
	r, err := (&connection{Server: c.Server, Key: c.Key}).client(e)
	if err != nil {
		return err
	}
	return mcp.Forward(e.ctx, mcp.Remote{Client: r.Client, Version: app.Version()}, e.stdin, e.stdout)
}
