package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// taskRecord is what this program reads of a task.
type taskRecord struct {
	ID        string         `json:"id"`
	ContextID string         `json:"contextId"`
	Status    taskStatus     `json:"status"`
	Artifacts []taskArtifact `json:"artifacts"`
	History   []taskMessage  `json:"history"`
}

type taskStatus struct {
	State     string       `json:"state"`
	Timestamp time.Time    `json:"timestamp"`
	Message   *taskMessage `json:"message"`
}

type taskMessage struct {
	Role  string     `json:"role"`
	Parts []taskPart `json:"parts"`
}

type taskArtifact struct {
	ID     string     `json:"artifactId"`
	Name   string     `json:"name"`
	Parts  []taskPart `json:"parts"`
	Append bool       `json:"append"`
}

// title names the artifact, unless the server alone has named it.
func (a *taskArtifact) title() string {
	switch {
	case a.Name != "":
		return "Artifact " + cleanLine(a.Name)
	case !strings.HasPrefix(a.ID, "artifact-"):
		return "Artifact " + cleanLine(a.ID)
	}
	return "Artifact"
}

type taskPart struct {
	Type string          `json:"type"`
	Text string          `json:"text"`
	Data json.RawMessage `json:"data"`
	File *struct {
		Name     string `json:"name"`
		MimeType string `json:"mimeType"`
		Bytes    []byte `json:"bytes"`
		URI      string `json:"uri"`
	} `json:"file"`
}

// String is the part as people can read it: a file is named, not poured out.
func (p *taskPart) String() string {
	switch {
	case p.File != nil && p.File.URI != "":
		return fmt.Sprintf("[file %s %s at %s]\n", p.File.Name, p.File.MimeType, p.File.URI)
	case p.File != nil:
		return fmt.Sprintf("[file %s %s, %d bytes; --json has them]\n", p.File.Name, p.File.MimeType, len(p.File.Bytes))
	case len(p.Data) > 0:
		return string(p.Data) + "\n"
	}
	return p.Text
}

func partsText(parts []taskPart) string {
	var b strings.Builder
	for i := range parts {
		b.WriteString(parts[i].String())
	}
	return b.String()
}

func (m *taskMessage) text() string {
	if m == nil {
		return ""
	}
	return partsText(m.Parts)
}

// rests reports whether nothing more happens to a task without its sender.
func rests(state string) bool {
	switch state {
	case "completed", "failed", "rejected", "canceled", "input-required", "auth-required":
		return true
	}
	return false
}

// endOf is the exit code for a task that was waited for; nil: it is completed.
func endOf(state string) error {
	switch state {
	case "completed":
		return nil
	case "failed", "rejected", "canceled":
		return taskEnd(exitTaskFailed)
	}
	return taskEnd(exitTaskWaiting)
}

func (e *env) printTask(agent string, t taskRecord) error {
	r := record{p: e.palette()}
	r.field("id", cleanLine(t.ID))
	r.field("agent", cleanLine(agent))
	r.field("state", r.p.status(cleanLine(t.Status.State)))
	r.field("context", cleanLine(t.ContextID))
	r.field("updated", when(t.Status.Timestamp)+" UTC")
	r.field("message", cleanLine(t.Status.Message.text()))
	for _, m := range t.History {
		r.text("Message of "+cleanLine(m.Role), m.text())
	}
	for _, a := range t.Artifacts {
		r.text(a.title(), partsText(a.Parts))
	}
	_, err := e.stdout.Write([]byte(r.b.String()))
	return err
}
