package relay

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/task"
)

// TestContextsOfSendersDiffer: no two senders share a context at the remote.
func TestContextsOfSendersDiffer(t *testing.T) {
	t.Parallel()
	base := task.Task{Org: "o", Agent: "a", ContextID: "c"}
	base.Sender.Org = "s"
	changed := map[string]func(*task.Task){
		"same":       func(*task.Task) {},
		"org":        func(x *task.Task) { x.Org = "o2" },
		"agent":      func(x *task.Task) { x.Agent = "a2" },
		"sender":     func(x *task.Task) { x.Sender.Org = "s2" },
		"context":    func(x *task.Task) { x.ContextID = "c2" },
		"boundaries": func(x *task.Task) { x.Org, x.Agent = "oa", "" },
	}
	want := contextOf("p", &base)
	for name, change := range changed {
		x := base
		change(&x)
		if got := contextOf("p", &x); (got == want) != (name == "same") {
			t.Errorf("%s: context %q, first %q", name, got, want)
		}
	}
}

// TestMetadataForTheRemote: what is meant for this platform stays here, except for the chain.
func TestMetadataForTheRemote(t *testing.T) {
	t.Parallel()
	got, err := metadataFor("p-1", []byte(`{"city":"Bern","big":12345678901234567890,
		"parley.dev/policy":{"timeout_seconds":5},"parley.dev/parent":"t-1"}`))
	if err != nil {
		t.Fatal(err)
	}
	if got["city"] != "Bern" || got["big"] != json.Number("12345678901234567890") {
		t.Errorf("metadata = %v, want that of the sender", got)
	}
	for _, key := range []string{"parley.dev/policy", "parley.dev/parent"} {
		if _, there := got[key]; there {
			t.Errorf("metadata has %s", key)
		}
	}
	chain, _ := json.Marshal(got["parley.dev/chain"])
	if !strings.Contains(string(chain), "p-1") {
		t.Errorf("chain = %s, want one that names the platform", chain)
	}
}

// TestIncomingIsFitForTheStore: what breaks our rules is repaired or left out.
func TestIncomingIsFitForTheStore(t *testing.T) {
	t.Parallel()
	m := incoming(&a2a.Message{ID: "bad\x00id", Parts: a2a.ContentParts{
		a2a.NewTextPart("nul\x00 and \xff"),
		nil,
		{Content: a2a.Raw(nil)},
		{Content: a2a.URL("")},
		{Content: a2a.Data{Value: map[string]any{"n": 1}}, Filename: "a\nb"},
	}})
	if m == nil || m.ID != "" || len(m.Parts) != 2 {
		t.Fatalf("message = %+v, want the two parts with content and no id", m)
	}
	if got := m.Parts[0].Text; got != "nul\uFFFD and \uFFFD" {
		t.Errorf("text = %q", got)
	}
	if got := m.Parts[1]; strings.Contains(got.Name, "\n") || string(got.Data) != `{"n":1}` {
		t.Errorf("data = %+v", got)
	}
	if empty := incoming(&a2a.Message{ID: "m"}); empty != nil {
		t.Errorf("a message without content = %+v, want none", empty)
	}
	if state, m := statusOf(&a2a.TaskStatus{State: a2a.TaskStateCanceled}); state != task.Failed || m == nil {
		t.Errorf("canceled by the remote = %s, %v, want failed with a reason", state, m)
	}
	if state, _ := statusOf(&a2a.TaskStatus{State: "new in version 2"}); state != task.Working {
		t.Errorf("an unknown state = %s, want working", state)
	}
}

// TestDeepData: data that some readers of JSON cannot parse is passed on as a file.
func TestDeepData(t *testing.T) {
	t.Parallel()
	nested := func(levels int) (v any) {
		for range levels {
			v = map[string]any{"list": []any{v}}
		}
		return v
	}
	got := parts(a2a.ContentParts{
		{Content: a2a.Data{Value: nested(maxDepth / 2)}},
		{Content: a2a.Data{Value: nested(5000)}, Metadata: map[string]any{"deep": nested(5000)}},
	})
	if len(got) != 2 || got[0].Kind != task.DataPart {
		t.Fatalf("got %d parts, want two, the first of them data", len(got))
	}
	deep := got[1]
	if deep.Kind != task.FilePart || deep.MediaType != "application/json" || len(deep.Bytes) < 5000 || deep.Data != nil {
		t.Errorf("deep data is a part of kind %v, type %q with %d bytes; want a file of JSON", deep.Kind, deep.MediaType, len(deep.Bytes))
	}
	if deep.Metadata != nil {
		t.Error("deep metadata was kept, want it dropped")
	}
}

// TestSkillsOfACard: skills are cut to our rules, and never refused.
func TestSkillsOfACard(t *testing.T) {
	t.Parallel()
	var d document
	card := `{"skills": [{"id": "play", "name": "Play\u0007", "tags": ["theatre", "bad\u0007tag", "theatre", "\u0007"]},
		{"id": "play", "name": "Twice"}, {"id": "", "name": "No id"}, {"id": "\u0007"}]}`
	if err := json.Unmarshal([]byte(card), &d); err != nil {
		t.Fatal(err)
	}
	got := d.skills()
	if len(got) != 2 || got[0].ID != "play" || strings.Join(got[0].Tags, ",") != "theatre,bad-tag" ||
		got[1].ID != "No id" || strings.Join(got[1].Tags, ",") != "No id" {
		t.Errorf("skills = %+v", got)
	}
	for range 2 * agent.MaxSkills {
		s := d.Skills[0]
		s.ID = "s" + strings.Repeat("x", len(d.Skills)%60)
		d.Skills = append(d.Skills, s)
	}
	if got := d.skills(); len(got) > agent.MaxSkills {
		t.Errorf("%d skills, want at most %d", len(got), agent.MaxSkills)
	}
}

// TestChunksAreCombined: what arrives together is one report, and nothing follows a status in it.
func TestChunksAreCombined(t *testing.T) {
	t.Parallel()
	chunk := func(text string, more bool) *a2a.TaskArtifactUpdateEvent {
		return &a2a.TaskArtifactUpdateEvent{
			Append: more, Artifact: &a2a.Artifact{ID: "r", Parts: a2a.ContentParts{a2a.NewTextPart(text)}},
		}
	}
	var b batch
	for i, text := range []string{"a", "b", "c"} {
		if !b.add(chunk(text, i > 0)) {
			t.Fatalf("chunk %s was refused", text)
		}
	}
	if len(b.report.Artifacts) != 1 || len(b.report.Artifacts[0].Artifact.Parts) != 3 {
		t.Errorf("artifacts = %+v, want one with three parts", b.report.Artifacts)
	}
	if !b.add(&a2a.TaskStatusUpdateEvent{Status: a2a.TaskStatus{State: a2a.TaskStateCompleted}}) || b.add(chunk("d", true)) {
		t.Error("a status must be the last in a report")
	}
}

// Artifacts of one id are one artifact, and those without a usable id do not overwrite each other.
func TestDistinctArtifacts(t *testing.T) {
	t.Parallel()
	long := a2a.ArtifactID(strings.Repeat("x", 2000))
	one := func(id a2a.ArtifactID, text string) *a2a.Artifact {
		return &a2a.Artifact{ID: id, Parts: a2a.ContentParts{a2a.NewTextPart(text)}}
	}
	f := &follower{shown: &shown{artifacts: map[string]seen{}}}
	list := []*a2a.Artifact{
		one("a", "1"), one("", "2"), one("a", "3"), nil, one("", "4"), one(long, "5"), one(long+"y", "6"), {ID: "none"},
	}
	got := map[string]string{}
	for _, u := range f.news(list) {
		got[u.Artifact.ID] = u.Artifact.Parts[0].Text
	}
	if got["a"] != "3" || got["artifact"] != "2" || got["artifact-2"] != "4" || len(got) != 5 {
		t.Errorf("artifacts = %v, want the last a, two without an id and two with long ones", got)
	}
	empty, named := one("", "B"), one("artifact", "A")
	for _, list := range [][]*a2a.Artifact{{{ID: ""}, empty}, {named, empty}, {empty, named}} {
		for _, a := range distinct(list) {
			if (a.ID == "artifact") != (a.Parts[0].Text == "A") {
				t.Errorf("of %d artifacts, %q is named %q", len(list), a.Parts[0].Text, a.ID)
			}
		}
	}
	if again := f.news(list); len(again) != 0 {
		t.Errorf("the same artifacts again report %d changes, want none", len(again))
	}
}

// An artifact that has grown is reported by its new parts, and one that has changed as a whole.
func TestAppendedParts(t *testing.T) {
	t.Parallel()
	part := func(text string) task.Part { return task.Part{Kind: task.TextPart, Text: text} }
	data := func(text string) task.Part { return task.Part{Kind: task.DataPart, Data: json.RawMessage(text)} }
	old := seenOf(&task.Artifact{Name: "n", Parts: []task.Part{part("ab"), data(`{"a": 1}`)}})
	for name, test := range map[string]struct {
		a    task.Artifact
		rest int // -1: not the same
	}{
		"equal":    {task.Artifact{Name: "n", Parts: []task.Part{part("ab"), data(`{"a":1}`)}}, 0},
		"longer":   {task.Artifact{Name: "n", Parts: []task.Part{part("ab"), data(`{"a": 1}`), part("c")}}, 1},
		"shorter":  {task.Artifact{Name: "n", Parts: []task.Part{part("ab")}}, -1},
		"renamed":  {task.Artifact{Name: "", Description: "n", Parts: []task.Part{part("ab"), data(`{"a": 1}`)}}, -1},
		"changed":  {task.Artifact{Name: "n", Parts: []task.Part{part("aB"), data(`{"a": 1}`)}}, -1},
		"moved":    {task.Artifact{Name: "n", Parts: []task.Part{{Kind: task.TextPart, Text: "a", Name: "b"}, data(`{"a": 1}`)}}, -1},
		"new data": {task.Artifact{Name: "n", Parts: []task.Part{part("ab"), data(`{"a": 2}`)}}, -1},
	} {
		rest, ok := old.appended(&test.a)
		if ok != (test.rest >= 0) || ok && len(rest) != test.rest {
			t.Errorf("%s: got %d parts, %v; want %d", name, len(rest), ok, test.rest)
		}
	}
}

// Of a card with very many interfaces, some are kept; each is compared with these only.
func TestCardWithManyInterfaces(t *testing.T) {
	t.Parallel()
	text := `{"additionalInterfaces":[` + strings.Repeat(`{"url":"a:1","transport":"GRPC"},`, 30_000)
	for i := range 1000 {
		text += fmt.Sprintf(`{"url":"b:%d","transport":"GRPC"},`, i)
	}
	d := &document{}
	if err := json.Unmarshal([]byte(text+`{}]}`), d); err != nil {
		t.Fatal(err)
	}
	if got := d.endpoints(&url.URL{Scheme: "https"}); len(got) != maxEndpoints {
		t.Errorf("%d interfaces, want the first %d", len(got), maxEndpoints)
	}
}

// Messages without an id differ if anything of their parts does.
func TestMessagesWithoutIDDiffer(t *testing.T) {
	t.Parallel()
	message := func(text, metadata string) *task.Message {
		return &task.Message{Parts: []task.Part{{Kind: task.TextPart, Text: text, Metadata: json.RawMessage(metadata)}}}
	}
	first := message("same", `{"page":1}`)
	for _, other := range []*task.Message{message("same", `{"page":2}`), message("same", ""), message("other", `{"page":1}`)} {
		if keyOf(first) == keyOf(other) {
			t.Errorf("%v and %v count as one message", first, other)
		}
	}
	if again := message("same", `{"page":1}`); keyOf(first) != keyOf(again) {
		t.Error("a message that comes again counts as another one")
	}
}
