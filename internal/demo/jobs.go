package demo

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/parley-dev/parley/internal/task"
)

// job is a task that is sent to an agent again and again, with other numbers, and what the agent
// does with it.
type job struct {
	agent, sender string   // the sender is a ref
	text          string   // # stands for a number
	number        int      // of the first ticket, invoice or build
	progress      string   // what the agent says when it begins
	result        []string // parts of the text that grows
	file          *task.Part
	question      string // that the agent asks in the middle; empty: none
	answer        string
	failure       string // with which it ends; empty: it completes
}

// resultID is the id of the artifact that grows.
const resultID = "result"

// begin returns the reports of a worker until it asks its question, or until the end.
func (j *job) begin() []task.Report {
	list := []task.Report{{State: task.Working, Message: task.Says(j.progress)}}
	if j.question == "" {
		return append(list, j.finish()...)
	}
	return append(list, task.Report{State: task.InputRequired, Message: task.Says(j.question)})
}

// finish returns the reports of a worker that has the answer to its question, or needs none.
func (j *job) finish() []task.Report {
	var list []task.Report
	for n, text := range j.result {
		last := n == len(j.result)-1 && j.failure == ""
		list = append(list, task.Report{Artifacts: []task.ArtifactUpdate{{
			Artifact: task.Artifact{ID: resultID, Name: "Result", Parts: []task.Part{{Kind: task.TextPart, Text: text}}},
			Append:   n > 0, LastChunk: last, More: !last,
		}}})
	}
	if j.failure != "" {
		return append(list, task.Report{State: task.Failed, Message: task.Says(j.failure)})
	}
	end := task.Report{State: task.Completed}
	if j.file != nil {
		end.Artifacts = []task.ArtifactUpdate{{
			Artifact: task.Artifact{ID: "file", Name: j.file.Name, Parts: []task.Part{*j.file}}, LastChunk: true,
		}}
	}
	return append(list, end)
}

// numberStep keeps the numbers of different jobs apart.
const numberStep = 4

func (j *job) nth(n int) string { return strconv.Itoa(j.number + numberStep*n) }

// about returns the text of a job for the nth time, about another ticket, invoice or build.
func (j *job) about(n int) string { return strings.Replace(j.text, "#", j.nth(n), 1) }

// id returns the id that its sender gives the job for the nth time, such as triage-ticket-48213.
func (j *job) id(n int) string {
	const most = 4
	head, _, numbered := strings.Cut(j.text, "#")
	if numbered {
		return slug(head + j.nth(n))
	}
	words := strings.Fields(j.text)
	return slug(strings.Join(words[:min(len(words), most)], " ") + " " + strconv.Itoa(n))
}

var (
	digits = regexp.MustCompile(`\d+`)
	others = regexp.MustCompile(`[^a-z0-9]+`)
)

func slug(text string) string { return others.ReplaceAllString(strings.ToLower(text), "-") }

// shape is a text without its numbers.
func shape(text string) string { return digits.ReplaceAllString(text, "#") }

// jobOf returns the job of a task. A task that someone else sent gets an answer that says what the
// agent is.
func jobOf(agent, text string) job {
	for _, j := range jobs {
		if j.agent == agent && shape(j.text) == shape(text) {
			return j
		}
	}
	return job{
		agent: agent, text: text, progress: "Reading the request.",
		result: []string{
			"This agent is part of the demo: a program plays it, and no model reads your request.\n",
			"\nYou wrote:\n\n" + quote(text),
			"\nTo connect a worker of your own, open the agent's page and follow “Connect a worker”.\n",
		},
	}
}

// maxQuote bounds how much of a request is repeated.
const maxQuote = 400

func quote(text string) string {
	if cut := []rune(text); len(cut) > maxQuote {
		text = string(cut[:maxQuote]) + " …"
	}
	return "> " + strings.ReplaceAll(text, "\n", "\n> ") + "\n"
}

func textFile(name, mediaType, text string) *task.Part {
	return &task.Part{Kind: task.FilePart, Name: name, MediaType: mediaType, Bytes: []byte(text)}
}
