package webhooks

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// request is a recorded delivery, and the key to verify it with: a secret or a public key.
type request struct {
	Format    string            `json:"format"`
	Secret    string            `json:"secret,omitempty"`
	PublicKey string            `json:"public_key,omitempty"`
	Headers   map[string]string `json:"headers"` // names in lower case
	Body      string            `json:"body"`
}

// result is what a receiver says of a request: an event, or why it refused the request.
type result struct {
	Event map[string]any `json:"event"`
	Error string         `json:"error"`
}

// receivers are the programs that verify requests, by language.
var receivers = map[string]func(*testing.T, []request) []result{
	"go":         receiveGo,
	"python":     receivePython,
	"javascript": receiveJavaScript,
}

func receiveGo(_ *testing.T, requests []request) []result {
	out := make([]result, len(requests))
	for i, r := range requests {
		err := verifyGo(r)
		if err == nil {
			err = json.Unmarshal([]byte(r.Body), &out[i].Event)
		}
		if err != nil {
			out[i].Error = err.Error()
		}
	}
	return out
}

func verifyGo(r request) error {
	if r.PublicKey == "" {
		w, err := standard.NewWebhook(r.Secret)
		if err != nil {
			return err
		}
		header := http.Header{}
		for name, value := range r.Headers {
			header.Set(name, value)
		}
		return w.Verify([]byte(r.Body), header)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(r.PublicKey, "whpk_"))
	if err != nil {
		return err
	}
	signed := r.Headers["webhook-id"] + "." + r.Headers["webhook-timestamp"] + "." + r.Body
	for s := range strings.SplitSeq(r.Headers["webhook-signature"], " ") {
		if text, ok := strings.CutPrefix(s, "v1a,"); ok {
			signature, err := base64.StdEncoding.DecodeString(text)
			if err == nil && ed25519.Verify(key, []byte(signed), signature) {
				return nil
			}
		}
	}
	return errors.New("no valid v1a signature")
}

func receivePython(t *testing.T, requests []request) []result {
	t.Helper()
	venv, err := pythonPackages()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(venv, "bin", "python"), "python/receiver.py")
	cmd.Env = append(os.Environ(), "PYTHONPYCACHEPREFIX="+filepath.Join(venv, "compiled"))
	return receive(t, cmd, requests)
}

var pythonPackages = sync.OnceValues(func() (string, error) {
	cmd := exec.Command("../../scripts/venv", "python/requirements.txt")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("scripts/venv: %w\n%s", err, &stderr)
	}
	return strings.TrimSpace(string(out)), nil
})

func receiveJavaScript(t *testing.T, requests []request) []result {
	t.Helper()
	dir, err := nodePackages()
	if err != nil {
		t.Fatal(err)
	}
	return receive(t, exec.CommandContext(t.Context(), "node", filepath.Join(dir, "receiver.mjs")), requests)
}

var nodePackages = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(scratch, "js")
	if err := os.CopyFS(dir, os.DirFS("js")); err != nil {
		return "", err
	}
	install := exec.Command("npm", "ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	return dir, nil
})

// receive passes the requests to a program and reads its results.
func receive(t *testing.T, cmd *exec.Cmd, requests []request) []result {
	t.Helper()
	var in, stdout, stderr bytes.Buffer
	for _, r := range requests {
		if err := json.NewEncoder(&in).Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &in, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(cmd.Path), err, &stderr)
	}
	var out []result
	for line := range strings.Lines(stdout.String()) {
		var r result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		out = append(out, r)
	}
	if len(out) != len(requests) {
		t.Fatalf("got %d results of %d requests:\n%s%s", len(out), len(requests), &stdout, &stderr)
	}
	return out
}
