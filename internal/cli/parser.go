package cli

import (
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/parley-dev/parley/internal/config"
)

// newParser returns the parser of the command line. Options may restrict it to one command.
func newParser(stdout, stderr io.Writer, options ...kong.Option) (*kong.Kong, error) {
	k, err := kong.New(&root{}, append(options,
		kong.Name("parley"),
		kong.Description("Parley is where the agents and people of an organization propose improvements "+
			"to their own work, vote on them and decide."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { panic(exit(code)) }),
		config.Help,
		phrases,
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(decodeDuration)),
		kong.ConfigureHelp(kong.HelpOptions{
			Compact: true, NoExpandSubcommands: true, FlagsLast: true, WrapUpperBound: 100,
		}),
		kong.ExplicitGroups([]kong.Group{
			{Key: "work", Title: "Improve work, and call agents:"},
			{Key: "login", Title: "Sign in:"},
			{Key: "manage", Title: "Manage an org (admins):"},
			{Key: "operator", Title: "Run a server (the operator, on the store):"},
			{Key: "more", Title: "More:"},
			{Key: "store", Title: "Which store:"},
			{Key: "server", Title: "Which server:"},
			{Key: "quotas", Title: "Quotas, per org or per principal:"},
		}),
	)...)
	if err != nil {
		return nil, err
	}
	_ = kong.Visit(k.Model, func(node kong.Visitable, next kong.Next) error {
		if n, ok := node.(*kong.Node); ok {
			describeTarget(n)
			for _, c := range n.Children {
				c.Group = &kong.Group{Key: "commands", Title: "Commands:"}
			}
		}
		return next(nil)
	})
	return k, nil
}

// describeTarget adapts the flags of a command that accepts a server or a store: there only
// the flags name a store, so --data has no default, and neither variables nor a file count.
func describeTarget(n *kong.Node) {
	flags := map[string]*kong.Flag{}
	for _, f := range n.Flags {
		flags[f.Name] = f
	}
	data, database, file := flags["data"], flags["database"], flags["config"]
	if data == nil || flags["server"] == nil {
		return
	}
	data.Help = "Work on the SQLite store in this folder, instead of a server."
	database.Help = "Work on this PostgreSQL store, instead of a server: postgres://user:password@host/name."
	file.Hidden = true
	for _, f := range []*kong.Flag{data, database, file} {
		f.Envs, f.Tag.Envs = nil, nil
	}
}

// only leaves out all commands but the named one with its subcommands: kong takes longer to build
// the model of all commands than most of them take to run. Other words than the name of a command
// get the model of all.
func only(name string) kong.Option {
	t := reflect.TypeFor[root]()
	var others []string
	for i := range t.NumField() {
		if f := t.Field(i); nameOf(f) != name {
			others = append(others, f.Name)
		}
	}
	if len(others) == t.NumField() {
		return kong.OptionFunc(func(*kong.Kong) error { return nil })
	}
	return kong.IgnoreFields(`^root\.(` + strings.Join(others, "|") + `)$`)
}

// nameOf returns the name of the command in a field of root. kong derives the same.
func nameOf(f reflect.StructField) string {
	if name := f.Tag.Get("name"); name != "" {
		return name
	}
	return strings.ToLower(f.Name)
}

// phrases is a kong option that replaces the names of texts that several flags share. A variable of
// kong would be evaluated again for every flag, with the variables of the other texts.
var phrases = kong.PostBuild(func(k *kong.Kong) error {
	text := strings.NewReplacer(
		"${server}", "URL of the server; if not given, that of your latest login, or "+defaultServer+
			" if you give a key or have no login",
		"${key}", "API key; your login at the server if not given. Prefer PARLEY_KEY: other users can see flags",
		"${public_url}", "URL by which browsers reach the server; that of the server which runs on --data if not given",
		"${key_scopes}", "svc:tasks:read, svc:tasks:write, svc:admin:admin, svc:a2a:write, svc:a2a:serve, agent:ID or agent:*",
		"${client_scopes}", "svc:tasks:read, svc:tasks:write, svc:a2a:write, svc:admin:admin, agent:ID or agent:*; "+
			"all but svc:admin:admin if not given",
		"${task_states}", "submitted, working, input-required, auth-required, completed, failed, rejected or canceled",
		"${redirects}", "https, http to the person's own machine, or a scheme such as com.example.app:/done",
		"${credential}", credentialHelp,
		"${skills_file}", "JSON file with a list of skills, instead of --skill: tags, or objects with id, name, description, "+
			"tags, examples, input_modes and output_modes; - reads stdin",
	)
	return kong.Visit(k.Model, func(node kong.Visitable, next kong.Next) error {
		if v, ok := node.(*kong.Value); ok {
			v.Help = text.Replace(v.Help)
		}
		return next(nil)
	})
})
