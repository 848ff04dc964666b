package cli

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

func TestMCPInstall(t *testing.T) {
	t.Setenv("PARLEY_KEY", "parley_secret")
	t.Setenv("PARLEY_SERVER", "https://parley.example/")
	for client, says := range map[string][]string{
		"claude-code": {
			"claude mcp add --transport http parley https://parley.example/mcp",
			`--header "Authorization: Bearer $PARLEY_KEY"`,
		},
		"claude-desktop": {`"command": "parley"`, `"PARLEY_KEY": "YOUR_PARLEY_KEY"`, `"https://parley.example"`},
		"cursor":         {`"url": "https://parley.example/mcp"`, `"Bearer ${env:PARLEY_KEY}"`},
		"vscode":         {`"type": "http"`, `"Bearer ${input:parley-key}"`, `"password": true`},
		"codex":          {"[mcp_servers.parley]", `url = "https://parley.example/mcp"`, `bearer_token_env_var = "PARLEY_KEY"`},
		"generic":        {`"https://parley.example/mcp"`, `"Bearer YOUR_PARLEY_KEY"`, `"mcp"`},
	} {
		var stdout, stderr bytes.Buffer
		args := []string{"mcp", "install", "--client", client}
		if code := Main(t.Context(), args, strings.NewReader(""), &stdout, &stderr); code != 0 {
			t.Fatalf("%s: %d %s", client, code, &stderr)
		}
		for _, s := range says {
			if !strings.Contains(stdout.String(), s) {
				t.Errorf("%s lacks %s:\n%s", client, s, &stdout)
			}
		}
		if strings.Contains(stdout.String()+stderr.String(), "parley_secret") {
			t.Errorf("%s shows the key", client)
		}
		if client != "codex" && client != "claude-code" && !json.Valid(stdout.Bytes()) {
			t.Errorf("%s is no JSON:\n%s", client, &stdout)
		}
		if stderr.Len() == 0 {
			t.Errorf("%s does not say where it goes", client)
		}
	}
	for client, says := range map[string]string{
		"claude-code":    "claude mcp add --transport http parley https://parley.example/mcp\n",
		"claude-desktop": `"command": "parley"`, "cursor": `"url": "https://parley.example/mcp"`, "vscode": `"servers"`,
		"codex": "url = \"https://parley.example/mcp\"\n", "generic": `"https://parley.example/mcp"`,
	} {
		var stdout, stderr bytes.Buffer
		args := []string{"mcp", "install", "--oauth", "--client", client}
		if code := Main(t.Context(), args, strings.NewReader(""), &stdout, &stderr); code != 0 {
			t.Fatalf("%s: %d %s", client, code, &stderr)
		}
		if !strings.Contains(stdout.String(), says) || strings.Contains(strings.ToLower(stdout.String()), "key") ||
			stderr.Len() == 0 {
			t.Errorf("%s:\n%s%s", client, &stdout, &stderr)
		}
	}
	for _, args := range [][]string{
		{"mcp", "install", "--client", "emacs"}, {"mcp", "install", "--server", "parley.example"}, {"mcp", "--server", "x"},
	} {
		var stdout, stderr bytes.Buffer
		if code := Main(t.Context(), args, strings.NewReader(""), &stdout, &stderr); code != exitUsage || stdout.Len() > 0 {
			t.Errorf("%v: %d %s%s", args, code, &stdout, &stderr)
		}
	}
}

func TestMCPNeedsAKeyAndAServer(t *testing.T) {
	t.Setenv("PARLEY_KEY", "")
	t.Setenv("PARLEY_CREDENTIALS", filepath.Join(t.TempDir(), "none.json"))
	var stdout, stderr bytes.Buffer
	code := Main(t.Context(), []string{"mcp"}, strings.NewReader(""), &stdout, &stderr)
	if code != exitUsage || !strings.Contains(stderr.String(), "PARLEY_KEY") {
		t.Errorf("%d %s", code, &stderr)
	}
	stderr.Reset()
	args := []string{"mcp", "--server", "http://127.0.0.1:1", "--key", "k"}
	code = Main(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
	if code != exitFailed || stdout.Len() > 0 || !strings.Contains(stderr.String(), "http://127.0.0.1:1") {
		t.Errorf("%d %s%s", code, &stdout, &stderr)
	}
}
