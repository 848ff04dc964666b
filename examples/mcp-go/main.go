// Command mcp-go lists the tools of a Parley server with the official MCP SDK and reports
// friction.
//
//	PARLEY_KEY=… go run ./examples/mcp-go http://127.0.0.1:8080/mcp
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// bearer adds the key to every request.
type bearer struct{ key string }

func (b bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+b.key)
	return http.DefaultTransport.RoundTrip(req)
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: mcp-go URL")
	}
	if err := run(context.Background(), os.Args[1], os.Getenv("PARLEY_KEY")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, endpoint, key string) error {
	client := mcp.NewClient(&mcp.Implementation{Name: "my-agent", Version: "1.0.0"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint:   endpoint,
		HTTPClient: &http.Client{Transport: bearer{key}},
	}, nil)
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }()
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	fmt.Println(len(tools.Tools), "tools")
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "report_friction", Arguments: map[string]any{
		"fingerprint": "docs:outdated", "title": "The docs are outdated", "category": "process",
		"problem": "An example failed.",
	}})
	if err != nil {
		return err
	}
	for _, content := range result.Content {
		if text, ok := content.(*mcp.TextContent); ok {
			fmt.Println(text.Text)
		}
	}
	return nil
}
