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

// BeforeResolve is a kong hook. It reads the configuration file, if one was named, for settings
// that have neither a flag nor an environment variable.
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
		// kong lets a resolver override the environment; here the environment wins.
		if !ok || slices.ContainsFunc(flag.Envs, isSet) {
			return nil, nil
		}
		return v, nil
	}))
	return nil
}

// AfterApply is a kong hook that runs when every setting has its value. Only one of --data and
// --database is used: the one with the higher precedence, except that a database in the file counts more
// than PARLEY_DATA. With PARLEY_DATABASE set, a command with --data uses the folder.
func (s *Store) AfterApply(ctx *kong.Context) error {
	data, database := SourceOf(ctx, "data"), SourceOf(ctx, "database")
	switch {
	case data == FromFlag && database == FromFlag:
		return errors.New("--data and --database exclude each other: give one of them")
	case data == FromEnv && database == FromFile: // packages and images set PARLEY_DATA for the case without a file
	case data > database:
		s.Database = ""
	}
	return nil
}

// Source is where a setting came from. A greater source takes precedence.
type Source int

// The sources of settings.
const (
	FromDefault Source = iota
	FromFile
	FromEnv
	FromFlag
)

// SourceOf returns where the value of a flag came from.
func SourceOf(ctx *kong.Context, flag string) Source {
	for _, p := range ctx.Path {
		switch {
		case p.Flag == nil || p.Flag.Name != flag:
		case p.Resolved:
			return FromFile
		default:
			return FromFlag
		}
	}
	if os.Getenv("PARLEY_"+strings.ToUpper(key(flag))) != "" {
		return FromEnv
	}
	return FromDefault
}

func isSet(env string) bool {
	_, ok := os.LookupEnv(env)
	return ok
}

// parseFile reads a flat JSON object. Every value becomes the string that the flag would have, so
// that the same code checks the file and the command line. An unknown or repeated key is an error:
// a typo must not fall back to a default.
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
			return nil, fmt.Errorf("unknown setting %q; the settings are %s", k, strings.Join(known, ", "))
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
		return nil, errors.New("must end after the JSON object")
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

// Keys lists the keys that a file may have: the names of the flags with '_' for '-'.
func Keys() []string {
	var out []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		env, ok := f.Tag.Lookup("env")
		if ok && env != "PARLEY_CONFIG" { // a file cannot name another file
			out = append(out, strings.ToLower(strings.TrimPrefix(env, "PARLEY_")))
		}
	}
	return out
}

func key(flag string) string { return strings.ReplaceAll(flag, "-", "_") }
