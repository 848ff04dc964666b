package cli

import (
	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/mcp"
)

type mcpCmd struct {
	Serve   mcpServeCmd   `cmd:"" default:"withargs" help:"Serve the tools on stdin and stdout (what parley mcp does without more)."`
	Install mcpInstallCmd `cmd:"" help:"Print how to connect an MCP client."`
}

// Help is shown by parley mcp --help.
func (mcpCmd) Help() string {
	return examples("parley mcp", "parley mcp install --client claude-code", "parley mcp install --client vscode --server https://parley.example")
}

type mcpServeCmd struct {
	jsonFlag `embed:""` // it speaks JSON anyway

	Server string `help:"Address of the server; ${default} if not given." default:"http://127.0.0.1:8080" env:"PARLEY_SERVER" placeholder:"URL" group:"server"`
	Key    string `help:"API key; better given as PARLEY_KEY, because other users of the machine can see flags. Your login at the server if not given (parley login)." env:"PARLEY_KEY" placeholder:"KEY" group:"server"`
}

// Help is shown by --help.
func (mcpServeCmd) Help() string {
	return "Needs PARLEY_KEY, or a login at the server (parley login). Ends with its input; what goes wrong is said on stderr.\n\n" + examples("parley mcp --server https://parley.example")
}

func (c *mcpServeCmd) Run(e *env) error {
	r, err := (&serverFlags{Server: c.Server, Key: c.Key}).client(e)
	if err != nil {
		return err
	}
	return mcp.Forward(e.ctx, mcp.Remote{Client: r.Client, Version: app.Version()}, e.stdin, e.stdout)
}
