package chain

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/errs"
)

func TestChainSurvivesItsMetadata(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		metadata string
		chain    Chain
		want     string
	}{
		"none":          {"", Chain{}, ""},
		"only a parent": {`{"parley.dev/parent":"u"}`, Chain{}, ""},
		"other members stay": {
			`{"b":1.50,"a":{"x":[]}}`,
			Chain{Depth: 1, Agents: []string{"a"}},
			`{"b":1.50,"a":{"x":[]},"parley.dev/chain":{"depth":1,"agents":["a"]}}`,
		},
		"replaces the chain": {
			`{"parley.dev/chain":{"depth":7},"parley.dev/parent":"u","x":"é"}`,
			Chain{Depth: 2, Via: []string{"p-1"}},
			`{"x":"é","parley.dev/chain":{"depth":2,"via":["p-1"]}}`,
		},
	} {
		got, err := Put([]byte(c.metadata), c.chain)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %s, %v; want %s", name, got, err, c.want)
			continue
		}
		back, err := Parse(got)
		if diff := cmp.Diff(c.chain, back); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got)\n%s", name, err, diff)
		}
	}
}

func TestParseRefusesWhatIsNoChain(t *testing.T) {
	t.Parallel()
	for metadata, at := range map[string]string{
		`{"parley.dev/chain":3}`:                    `metadata.parley.dev/chain`,
		`{"parley.dev/chain":null}`:                 "",
		`{"parley.dev/chain":{"depth":"1"}}`:        `metadata.parley.dev/chain`,
		`{"parley.dev/chain":{"depth":-1}}`:         `metadata.parley.dev/chain.depth`,
		`{"parley.dev/chain":{"agents":[""]}}`:      `metadata.parley.dev/chain.agents[0]`,
		`{"parley.dev/chain":{"via":["p",""]}}`:     `metadata.parley.dev/chain.via[1]`,
		`{"parley.dev/chain":{"depth":1,"new":[]}}`: "",
		`{"parley.dev/chain":{"agents":[` + strings.TrimSuffix(strings.Repeat(`"a",`, MaxDepth+1), ",") + `]}}`: `metadata.parley.dev/chain.agents`,
		`{"parley.dev/chain":{"via":["` + strings.Repeat("p", maxName+1) + `"]}}`:                               `metadata.parley.dev/chain.via[0]`,
	} {
		_, err := Parse([]byte(metadata))
		switch {
		case at == "":
			if err != nil {
				t.Errorf("%s: %v", metadata, err)
			}
		case err == nil || errs.KindOf(err) != errs.Invalid || errs.As(err).Fields[0].Path.String() != at:
			t.Errorf("%.80s: got %v, want %s invalid", metadata, err, at)
		}
	}
}

// A list of names is a proof of calls: a smaller depth does not hide them.
func TestDepthIsAtLeastWhatIsNamed(t *testing.T) {
	t.Parallel()
	c, err := Parse([]byte(`{"parley.dev/chain":{"depth":1,"agents":["a","b","c"]}}`))
	if err != nil || c.Depth != 3 {
		t.Errorf("got %+v, %v; want depth 3", c, err)
	}
}

func TestParent(t *testing.T) {
	t.Parallel()
	for metadata, want := range map[string]string{
		"": "", `{}`: "", `{"parley.dev/parent":"01J"}`: "01J", `{"parley.dev/p\u0061rent":"01\u004a"}`: "01J",
	} {
		if got, err := Parent([]byte(metadata)); err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", metadata, got, err, want)
		}
	}
	for _, metadata := range []string{`{"parley.dev/parent":1}`, `{"parley.dev/parent":""}`, `{"parley.dev/parent":null}`} {
		if _, err := Parent([]byte(metadata)); err == nil || errs.KindOf(err) != errs.Invalid {
			t.Errorf("%s: got %v, want it refused", metadata, err)
		}
	}
}

func TestChainsGrow(t *testing.T) {
	t.Parallel()
	first := Chain{}.Calls("a")
	second := first.Calls("b")
	other := first.Calls("c") // must not share memory with second
	if diff := cmp.Diff(Chain{Depth: 2, Agents: []string{"a", "b"}}, second); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Chain{Depth: 2, Agents: []string{"a", "c"}}, other); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Chain{Depth: 3, Via: []string{"p-1"}}, second.Relays("p-1")); diff != "" {
		t.Error(diff)
	}
	if got := second.Relays("p-1").Calls("d"); got.Depth != 4 || len(got.Via) != 0 {
		t.Errorf("got %+v, want depth 4 and no platforms", got)
	}
}

func TestJoinNeverShortens(t *testing.T) {
	t.Parallel()
	shallow := Chain{Depth: 1, Agents: []string{"a"}, Via: []string{"p-1"}}
	deep := Chain{Depth: 5, Agents: []string{"x"}, Via: []string{"p-2", "p-1"}}
	for _, got := range []Chain{shallow.Join(deep), deep.Join(shallow)} {
		if got.Depth != 5 || got.Agents[0] != "x" || len(got.Via) != 2 {
			t.Errorf("got %+v", got)
		}
	}
}

func TestCheckEndsLoops(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		chain    Chain
		limit    int
		platform string
		code     string
	}{
		"none":               {Chain{}, 0, "p-1", ""},
		"the last":           {Chain{Depth: DefaultDepth}, 0, "p-1", ""},
		"one too deep":       {Chain{Depth: DefaultDepth + 1}, 0, "p-1", CodeTooDeep},
		"its own limit":      {Chain{Depth: 3}, 2, "p-1", CodeTooDeep},
		"another platform":   {Chain{Depth: 1, Via: []string{"p-2"}}, 0, "p-1", ""},
		"comes back":         {Chain{Depth: 2, Via: []string{"p-1", "p-2"}}, 0, "p-1", CodeLoop},
		"platform not known": {Chain{Depth: 1, Via: []string{"p-2"}}, 0, "", ""},
	} {
		err := c.chain.Check(c.limit, c.platform)
		if c.code == "" && err != nil || c.code != "" && (err == nil || errs.As(err).Code != c.code) {
			t.Errorf("%s: got %v, want %q", name, err, c.code)
		}
	}
}
