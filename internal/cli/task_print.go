package cli

import (
	"fmt"
	"strings"

	"github.com/parley-dev/parley/sdk/client"
)

// artifactTitle returns the heading of an artifact. Ids that the server made are left out.
func artifactTitle(a *client.Artifact) string {
	switch {
	case a.Name != "":
		return "Artifact " + cleanLine(a.Name)
	case !strings.HasPrefix(a.ID, "artifact-"):
		return "Artifact " + cleanLine(a.ID)
	}
	return "Artifact"
}

// partText returns a part for people to read. A file is named, not printed.
func partText(p *client.Part) string {
	switch {
	case p.Kind == client.PartFile && p.URL != "":
		return fmt.Sprintf("[file %s %s at %s]\n", p.Name, p.MediaType, p.URL)
	case p.Kind == client.PartFile:
		return fmt.Sprintf("[file %s %s, %d bytes; --json has them]\n", p.Name, p.MediaType, len(p.Bytes))
	case p.Kind == client.PartData:
		return string(p.Data) + "\n"
	}
	return p.Text
}

func partsText(parts []client.Part) string {
	var b strings.Builder
	for i := range parts {
		b.WriteString(partText(&parts[i]))
	}
	return b.String()
}

func messageText(m *client.Message) string {
	if m == nil {
		return ""
	}
	return partsText(m.Parts)
}

// endOf returns the exit code for a task that a command waited for; nil if it is completed.
func endOf(state client.TaskState) error {
	switch state {
	case client.TaskCompleted:
		return nil
	case client.TaskFailed, client.TaskRejected, client.TaskCanceled:
		return taskEnd(exitTaskFailed)
	}
	return taskEnd(exitTaskWaiting)
}

func (e *env) printTask(agent string, t *client.Task) error {
	r := record{p: e.palette()}
	r.field("id", cleanLine(t.ID))
	r.field("agent", cleanLine(agent))
	r.field("state", r.p.status(cleanLine(string(t.Status.State))))
	r.field("context", cleanLine(t.ContextID))
	r.field("updated", when(t.Status.Timestamp)+" UTC")
	r.field("message", cleanLine(messageText(t.Status.Message)))
	for i := range t.History {
		m := &t.History[i]
		r.text("Message of "+cleanLine(string(m.Role)), messageText(m))
	}
	for i := range t.Artifacts {
		a := &t.Artifacts[i]
		r.text(artifactTitle(a), partsText(a.Parts))
	}
	_, err := e.stdout.Write([]byte(r.b.String()))
	return err
}
