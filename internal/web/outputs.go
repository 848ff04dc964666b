package web

import (
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/text"
)

// workView is the task of an agent with its artifacts, for members who may read it.
type workView struct {
	State   string
	Says    string // meaning of the state
	Detail  bool   // the member may read the task
	Gone    bool   // the task is no longer stored
	Large   int64  // size of the task, if it is too large for this page
	Message string // the agent's message with its last status
	Outputs []outputView
	// MoreOutputs is how many are left out.
	MoreOutputs int64
}

// LargeSize formats Large.
func (w *workView) LargeSize() string { return byteSize(w.Large) }

// outputView is an artifact.
type outputView struct {
	Name, Description string
	Parts             []outputPart
}

// outputPart is a part of an artifact: text is shown, everything else can be downloaded.
type outputPart struct {
	Text string
	Cut  bool   // the text is cut
	Href string // download; empty if there is none
	File string
	Size string
	URL  string // external URL of the content, shown as text
}

// Limits of the content of a task on a page, in bytes. Larger content can be downloaded.
const (
	maxWorkBeside = 1 << 20 // of a task on another page
	maxWork       = 64 << 20
	maxOutputText = 16 << 10 // of a part
	maxOutputAll  = 64 << 10 // of a page
	maxOutputs    = 100      // number of artifacts, and of parts
)

// workWords explain the states of a task.
var workWords = map[string]string{
	"submitted": "waits for the agent", "working": "the agent works on it", "completed": "the agent is done",
	"failed": "the agent failed", "canceled": "canceled", "rejected": "the agent declined it",
	"input-required": "the agent waits for an answer", "auth-required": "the agent waits for access",
}

// work returns the task of an agent for a follow-up, or nil. The content of a task larger than
// most bytes is not read.
func (v *visit) work(f *followup.Followup, most int64) (*workView, error) {
	if f.TaskUID == "" {
		return nil, nil
	}
	out := &workView{State: f.TaskState, Says: workWords[f.TaskState]}
	a, err := v.access(identity.ReadTasks)
	if err != nil {
		return out, nil //nolint:nilerr // the member may only see the state
	}
	out.Detail = true
	ctx := v.r.Context()
	head, err := v.Tasks.OrgTaskWith(ctx, a, f.TaskUID, task.Content{})
	if err != nil {
		out.Gone = errs.KindOf(err) == errs.NotFound
		return out, unlessGone(err)
	}
	out.Message = clipBytes(messageText(head.Message), maxOutputText)
	if head.Size > most {
		out.Large = head.Size
		return out, nil
	}
	t, err := v.Tasks.OrgTaskWith(ctx, a, f.TaskUID, task.Content{Artifacts: true, Sparse: true, Clip: maxOutputText})
	if err != nil {
		out.Gone = errs.KindOf(err) == errs.NotFound
		return out, unlessGone(err)
	}
	out.Outputs = newOutputs(t.Artifacts, v.base()+"/followups/"+f.ID+"/outputs/")
	out.MoreOutputs = moreOutputs(t.Artifacts)
	return out, nil
}

func unlessGone(err error) error {
	if errs.KindOf(err) == errs.NotFound {
		return nil
	}
	return err
}

// newOutputs returns the views of artifacts. at is the URL prefix of downloads, followed by the
// numbers of the artifact and the part.
func newOutputs(artifacts []task.Artifact, at string) []outputView {
	room := maxOutputAll
	var out []outputView
	for i := range artifacts[:min(len(artifacts), maxOutputs)] {
		a := &artifacts[i]
		o := outputView{Name: a.Name, Description: a.Description}
		if o.Name == "" {
			o.Name = a.ID
		}
		o.Parts = newOutputParts(a.Parts, at+strconv.Itoa(i)+"/", &room)
		out = append(out, o)
	}
	return out
}

// moreOutputs returns how many artifacts newOutputs leaves out.
func moreOutputs(artifacts []task.Artifact) int64 { return int64(max(0, len(artifacts)-maxOutputs)) }

// newOutputParts returns the views of parts. at is the URL prefix of downloads; empty means none.
// room is the remaining number of bytes for text on the page.
func newOutputParts(parts []task.Part, at string, room *int) []outputPart {
	var out []outputPart
	for j, next := 0, 0; j < len(parts) && len(out) < maxOutputs; j = next {
		var p task.Part
		p, next = partAt(parts, j)
		href := ""
		if at != "" {
			href = at + strconv.Itoa(j)
		}
		shown := newOutputPart(&p, href, min(*room, maxOutputText))
		*room = max(0, *room-len(shown.Text))
		out = append(out, shown)
	}
	return out
}

// partAt returns a part and the index of the next one. Consecutive texts are merged, because an
// artifact that grew has many.
func partAt(parts []task.Part, j int) (p task.Part, next int) {
	p, next = parts[j], j+1
	if p.Kind != task.TextPart {
		return p, next
	}
	var b strings.Builder
	b.WriteString(p.Text)
	for ; next < len(parts) && parts[next].Kind == task.TextPart; next++ {
		b.WriteString(parts[next].Text)
		p.Left += parts[next].Left // far beyond the part of the text that a page shows
	}
	p.Text = b.String()
	return p, next
}

func newOutputPart(p *task.Part, href string, room int) outputPart {
	content, name := partContent(p)
	size := int64(len(content)) + p.Left
	switch {
	case p.Kind == task.TextPart && size <= int64(room):
		return outputPart{Text: p.Text}
	case p.Kind == task.TextPart:
		text := clipBytes(p.Text, min(room, maxOutputText/4))
		return outputPart{Text: text, Cut: true, Href: href, File: name, Size: byteSize(size)}
	case p.Kind == task.FilePart && p.URL != "":
		return outputPart{URL: p.URL, File: name}
	}
	out := outputPart{Href: href, File: name, Size: byteSize(size)}
	if p.Kind == task.DataPart && size <= int64(room) {
		out.Text = string(content)
	}
	return out
}

// partContent returns the content of a part, and a name for its file.
func partContent(p *task.Part) (content []byte, name string) {
	name = fileName(p.Name)
	switch p.Kind {
	case task.TextPart:
		content = []byte(p.Text)
		return content, orName(name, "text.txt")
	case task.DataPart:
		return p.Data, orName(name, "data.json")
	default:
		return p.Bytes, orName(name, "file")
	}
}

func orName(name, otherwise string) string {
	if name == "" {
		return otherwise
	}
	return name
}

// fileName makes a name that an agent chose safe for a file system: no path, no deceptive
// characters, no leading dot.
func fileName(s string) string {
	s = text.CleanName(s[strings.LastIndexAny(s, `/\`)+1:])
	s = strings.Map(func(r rune) rune {
		if strings.ContainsRune(`:*?"<>|`, r) {
			return -1
		}
		return r
	}, s)
	return clipRunes(strings.TrimLeft(strings.TrimSpace(s), ". "), 100)
}

// outputFile sends a part of an artifact for a follow-up as a download.
func (v *visit) outputFile() error {
	a, err := v.access(identity.ReadTasks)
	if err != nil {
		return err
	}
	ctx := v.r.Context()
	of, err := v.access(identity.ReadFollowup)
	if err != nil {
		return err
	}
	f, err := v.Followups.Get(ctx, of, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	if f.TaskUID == "" {
		return errs.ErrNotFound
	}
	return v.sendOutput(func(number int) (task.Artifact, error) { return v.Tasks.OrgArtifact(ctx, a, f.TaskUID, number) })
}

// sendOutput sends the part of an artifact that the URL names, and reads no other artifact. Content
// of an agent must never run as a page of this site: it is an untyped attachment in a sandbox.
func (v *visit) sendOutput(read func(number int) (task.Artifact, error)) error {
	i, err1 := strconv.Atoi(v.r.PathValue("artifact"))
	j, err2 := strconv.Atoi(v.r.PathValue("part"))
	if err1 != nil || err2 != nil || i < 0 || j < 0 {
		return errs.ErrNotFound
	}
	a, err := read(i)
	if err != nil {
		return err
	}
	if j >= len(a.Parts) {
		return errs.ErrNotFound
	}
	p, _ := partAt(a.Parts, j)
	content, name := partContent(&p)
	h := v.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	h.Set("Content-Length", strconv.Itoa(len(content)))
	contentHeaders(h)
	v.w.WriteHeader(http.StatusOK)
	_, _ = v.w.Write(content) // an error means that the browser is gone
	return nil
}

// messageText returns the text parts of a message.
func messageText(m *task.Message) string {
	if m == nil {
		return ""
	}
	var b strings.Builder
	for i := range m.Parts {
		if m.Parts[i].Kind == task.TextPart && b.Len() < maxOutputText {
			if b.Len() > 0 {
				b.WriteString("\n")
			}
			b.WriteString(m.Parts[i].Text)
		}
	}
	return b.String()
}

// clipBytes cuts a text to a number of bytes, at the start of a character.
func clipBytes(s string, most int) string {
	if len(s) <= most {
		return s
	}
	most = max(most, 0)
	for most > 0 && s[most]&0xC0 == 0x80 {
		most--
	}
	return s[:most] + "…"
}

// byteSize formats a size in the largest unit that fits.
func byteSize(n int64) string {
	switch {
	case n < 1<<10:
		return plural(n, "byte", "bytes")
	case n < 1<<20:
		return strconv.FormatInt((n+1<<9)>>10, 10) + " KB"
	default:
		return strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64) + " MB"
	}
}
