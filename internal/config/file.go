package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// BeforeResolve is called by kong for the command that was chosen: it reads the
// file, if one was named, and has it answer for settings that were given neither
// as a flag nor in the environment.
func (s *Store) BeforeResolve(ctx *kong.Context, path *kong.Path) error {
	i := slices.IndexFunc(path.Flags, func(f *kong.Flag) bool { return f.Name == "config" })
	if i < 0 {
		return nil
	}
	name, _ := ctx.FlagValue(path.Flags[i]).(string)
	if name == "" {
		return nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("cannot read the configuration: %w", err)
	}
	values, err := parseFile(data)
	if err != nil {
		return fmt.Errorf("configuration %s: %w", name, err)
	}
	ctx.AddResolver(kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		v, ok := values[key(flag.Name)]
		// kong would let a resolver override the environment; our order is the other way round.
		if !ok || slices.ContainsFunc(flag.Envs, isSet) {
			return nil, nil
		}
		return v, nil
	}))
	return nil
}

// AfterApply is called by kong when every setting has its value. One of --data
// and --database is used, and it must be the one that was named the more
// explicitly: with PARLEY_DATABASE set, a command with --data means the folder.
func (s *Store) AfterApply(ctx *kong.Context) error {
	data, database := source(ctx, "data"), source(ctx, "database")
	switch {
	case data == fromFlag && database == fromFlag:
		return errors.New("--data and --database exclude each other: give one of them")
	case data > database:
		s.Database = ""
	}
	return nil
}

// Where a setting came from, the stronger source last.
const (
	fromDefault = iota
	fromFile
	fromEnv
	fromFlag
)

// MoreExplicit reports whether a flag was named more explicitly than all the others:
// on the command line, in the environment, in the file, or by default.
func MoreExplicit(ctx *kong.Context, flag string, others ...string) bool {
	for _, o := range others {
		if source(ctx, flag) <= source(ctx, o) {
			return false
		}
	}
	return true
}

// OnCommandLine reports whether a flag was given as such.
func OnCommandLine(ctx *kong.Context, flag string) bool { return source(ctx, flag) == fromFlag }

func source(ctx *kong.Context, flag string) int {
	for _, p := range ctx.Path {
		switch {
		case p.Flag == nil || p.Flag.Name != flag:
		case p.Resolved:
			return fromFile
		default:
			return fromFlag
		}
	}
	if isSet("PARLEY_" + strings.ToUpper(key(flag))) {
		return fromEnv
	}
	return fromDefault
}

func isSet(env string) bool {
	_, ok := os.LookupEnv(env)
	return ok
}

// parseFile reads a flat JSON object. Every value becomes the string that the flag
// would have, so that a file and a command line are checked by the same code. An
// unknown or repeated key is refused: a typing error must not fall back to a default.
func parseFile(data []byte) (map[string]string, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("must be a JSON object")
	}
	known := Keys()
	values := map[string]string{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, err
		}
		k, _ := t.(string)
		if !slices.Contains(known, k) {
			return nil, fmt.Errorf("there is no setting %q; there are %s", k, strings.Join(known, ", "))
		}
		if _, dup := values[k]; dup {
			return nil, fmt.Errorf("%q is set twice", k)
		}
		var v any
		if err := dec.Decode(&v); err != nil {
			return nil, fmt.Errorf("%q: %w", k, err)
		}
		if values[k], err = flagValue(v); err != nil {
			return nil, fmt.Errorf("%q: %w", k, err)
		}
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("has something after the JSON object")
	}
	return values, nil
}

func flagValue(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	case bool:
		return fmt.Sprint(v), nil
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			s, ok := e.(string)
			if !ok {
				return "", errors.New("must be a list of strings")
			}
			parts[i] = s
		}
		return strings.Join(parts, ","), nil
	}
	return "", errors.New("must be a string, a number, true, false or a list of strings")
}

// Keys lists the keys that a file may have: the flags, with '_' for '-'.
func Keys() []string {
	var out []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		env, ok := f.Tag.Lookup("env")
		if ok && env != "PARLEY_CONFIG" { // a file cannot name another
			out = append(out, strings.ToLower(strings.TrimPrefix(env, "PARLEY_")))
		}
	}
	return out
}

func key(flag string) string { return strings.ReplaceAll(flag, "-", "_") }
