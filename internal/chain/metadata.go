package chain

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/metadata"
)

// wireChain is the form of a chain in the metadata.
type wireChain struct {
	Depth  int      `json:"depth"`
	Agents []string `json:"agents,omitempty"`
	Via    []string `json:"via,omitempty"`
}

// Parse returns the chain in the metadata of a request or a task, which is a JSON object or empty.
// Without a chain it returns the zero value. The depth is at least the number of agents.
func Parse(raw []byte) (Chain, error) {
	value, err := metadata.Member(raw, Key)
	if err != nil || value == nil {
		return Chain{}, err
	}
	var w wireChain
	if err := json.Unmarshal(value, &w); err != nil {
		return Chain{}, invalid("must be an object with depth (a number), agents and via (arrays of strings)", Key)
	}
	if w.Depth < 0 {
		return Chain{}, invalid("must not be negative", Key, "depth")
	}
	if err := checkNames("agents", w.Agents); err != nil {
		return Chain{}, err
	}
	if err := checkNames("via", w.Via); err != nil {
		return Chain{}, err
	}
	return Chain{Depth: max(w.Depth, len(w.Agents), len(w.Via)), Agents: w.Agents, Via: w.Via}, nil
}

func checkNames(of string, names []string) error {
	if len(names) > MaxDepth {
		return invalid(fmt.Sprintf("must have at most %d entries", MaxDepth), Key, of)
	}
	for i, name := range names {
		if name == "" || len(name) > maxName {
			return invalid(fmt.Sprintf("must have 1 to %d bytes", maxName), Key, of, i)
		}
	}
	return nil
}

// Parent returns the task that the sender says it works on: its uid, or the token of its lease. It
// is empty if the metadata names none.
func Parent(raw []byte) (string, error) {
	value, err := metadata.Member(raw, ParentKey)
	if err != nil || value == nil {
		return "", err
	}
	if value.Kind() != '"' {
		return "", invalid("must be a string: the uid of a task, or the token of its lease", ParentKey)
	}
	parent, err := jsontext.AppendUnquote(nil, value)
	if err != nil || len(parent) == 0 || len(parent) > maxName {
		return "", invalid(fmt.Sprintf("must have 1 to %d bytes", maxName), ParentKey)
	}
	return string(parent), nil
}

// Put returns the metadata with the chain and without a parent, which may be the token of a lease.
// Other members keep their order. A zero chain is left out, and an object that would be empty is nil.
func Put(raw []byte, c Chain) ([]byte, error) {
	var out metadata.Writer
	err := metadata.Each(raw, func(name string, value jsontext.Value) error {
		if name == Key || name == ParentKey {
			return nil
		}
		return out.Add(name, value)
	})
	if err != nil {
		return nil, err
	}
	if !c.IsZero() {
		text, err := json.Marshal(wireChain(c))
		if err != nil {
			return nil, err
		}
		if err := out.Add(Key, text); err != nil {
			return nil, err
		}
	}
	if out.Empty() {
		return nil, nil
	}
	return out.End()
}

// invalid is the error for a part of the metadata.
func invalid(msg string, path ...any) error {
	return errs.InvalidFields(errs.Field{Path: errs.At("metadata").Then(path...), Message: msg})
}
