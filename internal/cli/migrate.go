package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/parley-dev/parley/internal/store"
)

// migrationJSON is the outcome of parley migrate, or of its dry run.
type migrationJSON struct {
	Engine  string     `json:"engine"`
	Status  string     `json:"status"` // "up to date" or "pending"
	Schema  int        `json:"schema"`
	Applied []stepJSON `json:"applied"`
	Pending []stepJSON `json:"pending"`
	Nodes   []nodeJSON `json:"nodes"` // older ones that use the store
}

type stepJSON struct {
	Number     int    `json:"number"`
	Name       string `json:"name"`
	Compatible bool   `json:"compatible"`
}

type nodeJSON struct {
	ID      string  `json:"id,omitempty"`
	Host    string  `json:"host"`
	Version string  `json:"version,omitempty"`
	Schema  int     `json:"schema,omitempty"`
	Seen    float64 `json:"seen_seconds_ago"`
}

func newMigrationJSON(r store.Report, dry bool) migrationJSON {
	out := migrationJSON{
		Engine: r.Engine, Status: "up to date", Schema: r.Schema + len(r.Pending),
		Applied: []stepJSON{}, Pending: []stepJSON{}, Nodes: []nodeJSON{},
	}
	steps := make([]stepJSON, len(r.Pending))
	for i, s := range r.Pending {
		steps[i] = stepJSON(s)
	}
	for _, n := range r.Nodes {
		out.Nodes = append(out.Nodes, nodeJSON{n.ID, n.Host, n.Version, n.Schema, n.Seen.Seconds()})
	}
	switch {
	case dry && len(steps) > 0:
		out.Status, out.Schema, out.Pending = "pending", r.Schema, steps
	default:
		out.Applied = steps
	}
	return out
}

func (m migrationJSON) print(w io.Writer, r store.Report) error {
	var b strings.Builder
	for _, s := range m.Applied {
		fmt.Fprintf(&b, "applied %s (%s)\n", s.Name, s.kind())
	}
	for _, s := range m.Pending {
		fmt.Fprintf(&b, "pending %s (%s)\n", s.Name, s.kind())
	}
	for _, n := range r.Nodes {
		fmt.Fprintf(&b, "used by %s\n", cleanLine(n.String()))
	}
	if m.Status == "pending" {
		fmt.Fprintf(&b, "The %s store has schema %d and is not up to date.\n", m.Engine, m.Schema)
	} else {
		fmt.Fprintf(&b, "The %s store is up to date (schema %d).\n", m.Engine, m.Schema)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (s stepJSON) kind() string {
	if s.Compatible {
		return "compatible"
	}
	return "incompatible"
}
