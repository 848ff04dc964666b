package cli

import (
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/alecthomas/kong"

	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/sdk/client"
)

// EitherFlags are part of a command that works on the store itself, or through a
// running server if one is named. Exported for the same reason as StoreFlags.
type EitherFlags struct {
	StoreFlags `embed:""`
	Server     string `help:"Work through this server instead, as an admin of the org. With --data or --database, or their variables, the store is meant, unless --server is given as a flag." env:"PARLEY_SERVER" placeholder:"URL" group:"server"`
	Key        string `help:"API key for --server; better given as PARLEY_KEY, because other users of the machine can see flags. Your login there if not given (parley login)." env:"PARLEY_KEY" placeholder:"KEY" group:"server"`
}

// remote returns the client of the server that was named, or nil if the store is meant.
func (f *EitherFlags) remote(e *env, k *kong.Context, org string) (*remote, error) {
	if f.Server == "" || !config.MoreExplicit(k, "server", "data", "database") {
		if config.OnCommandLine(k, "server") {
			return nil, usage("--server and --data or --database exclude each other: give one of them")
		}
		return nil, nil
	}
	return (&serverFlags{jsonFlag: f.jsonFlag, Server: f.Server, Key: f.Key, Org: org}).client(e)
}

// pages prints one page of a list that has cursors, and how to go on.
func (e *env) pages(t *table, none, next string) error {
	if len(t.rows) == 0 {
		_, err := fmt.Fprintln(e.stdout, none)
		return err
	}
	p := e.palette()
	if err := t.write(e.stdout, p); err != nil || next == "" {
		return err
	}
	_, err := fmt.Fprintln(e.stdout, p.dim("more with --cursor "+cleanLine(next)))
	return err
}

// all reads every page of a list, whose records stand under name: as they came, and
// each decoded for row.
func all[T any](name string, list func(...client.Option) (*client.Page[T], error), row func(*T)) ([]json.RawMessage, error) {
	query := url.Values{"limit": {"200"}}
	out := []json.RawMessage{}
	for {
		var res client.Response
		page, err := list(client.WithQuery(query), client.WithResponse(&res))
		if err != nil {
			return nil, explain(err)
		}
		var raw map[string]json.RawMessage
		var records []json.RawMessage
		if err := json.Unmarshal(res.Body, &raw); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(raw[name], &records); err != nil {
			return nil, err
		}
		out = append(out, records...)
		for i := range page.Items {
			row(&page.Items[i])
		}
		if page.Next == "" {
			return out, nil
		}
		query.Set("cursor", page.Next)
	}
}

// pageFlags go through a list that has cursors.
type pageFlags struct {
	Limit  int    `help:"Results on a page." placeholder:"N"`
	Cursor string `help:"Go on where the page before ended." placeholder:"CURSOR"`
}
