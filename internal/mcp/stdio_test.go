package mcp

import (
	"fmt"
	"io"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-dev/parley/sdk/client"
)

func remoteClient(t testing.TB, server, key string) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{URL: server, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// pipe runs Forward and connects the SDK's client to it.
func (w *world) pipe(key string) *sdk.ClientSession {
	w.Helper()
	toServer, in := io.Pipe()
	out, fromServer := io.Pipe()
	done := make(chan error, 1)
	go func() {
		remote := Remote{Client: remoteClient(w, w.url+"/", key), Version: "1"}
		err := Forward(w.Context(), remote, toServer, fromServer)
		_ = fromServer.CloseWithError(io.EOF)
		done <- err
	}()
	near := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	s, err := near.Connect(w.Context(), &sdk.IOTransport{Reader: out, Writer: in}, nil)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		_ = s.Close()
		if err := <-done; err != nil {
			w.Errorf("Forward = %v, want nil", err)
		}
	})
	return s
}

func TestForward(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.member("acme", "user:ada")
	far, near := w.session(key), w.pipe(key)
	there, err := far.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	here, err := near.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(here.Tools) != len(there.Tools) || near.InitializeResult().Instructions != instructions {
		t.Errorf("tools = %d, want %d and the same instructions", len(here.Tools), len(there.Tools))
	}
	p := call[record](w, near, "submit_proposal", submission())
	if p.SubmittedBy != "user:ada" {
		t.Errorf("submitted by %q, want user:ada", p.SubmittedBy)
	}
	call[listOut](w, near, "list_proposals", nil)
	if f := w.fail(near, "submit_proposal", object{}); f.Code != "request.invalid" || len(f.at) != 4 {
		t.Errorf("got %+v, want request.invalid with 4 fields", f)
	}
	if f := w.fail(near, "get_proposal", object{"id": "prop-1"}); f.Code != "resource.not_found" {
		t.Errorf("got %+v, want resource.not_found", f)
	}
}

// Piped calls get their responses, although the input has ended by then.
func TestForwardAnswersBeforeItEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var in strings.Builder
	in.WriteString(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n")
	in.WriteString(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")
	const calls = 20
	for i := range calls {
		fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"submit_proposal",`+
			`"arguments":{"title":"%d","category":"process","problem":%q,"suggested_fix":"f"}}}`+"\n",
			i+1, i, strings.Repeat("p", 9000))
	}
	var out strings.Builder
	remote := Remote{Client: remoteClient(t, w.url, w.member("acme", "user:ada"))}
	if err := Forward(t.Context(), remote, strings.NewReader(in.String()), &out); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), `"structuredContent"`); n != calls {
		t.Errorf("responses = %d, want %d", n, calls)
	}
}

func TestForwardSaysWhyItCannotStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for server, says := range map[string]string{w.url: "auth.invalid", "http://127.0.0.1:1": "refused"} {
		remote := Remote{Client: remoteClient(t, server, "parley_bad")}
		err := Forward(t.Context(), remote, strings.NewReader(""), io.Discard)
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), server) {
			t.Errorf("%s: err = %v, want one with %q and the server", server, err, says)
		}
	}
}
