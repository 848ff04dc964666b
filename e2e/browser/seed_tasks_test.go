package browser

import (
	"fmt"
	"strings"
)

// runner is the agent whose tasks are seeded.
const runner = "runner"

// tasks seeds an agent with tasks in several states. user:admin sends them.
func (d *seeding) tasks() {
	d.do(d.root, "POST /agents", object{
		"id": runner, "name": "Runner", "description": "Runs jobs.", "skills": []string{"jobs", "reports"},
	})
	d.worker = d.keyOf("agent:"+runner, serveTasks)
	for i, end := range []string{"failed", "failed", "completed", "input-required"} {
		d.sendTask(runner, fmt.Sprintf("job-%d", i+1), "Run the job "+fmt.Sprint(i+1)+".")
		if i == 0 {
			d.do(d.worker, "DELETE "+d.claim(d.worker, runner, "runner-a"), nil)
		}
		lease := d.claim(d.worker, runner, "runner-b")
		d.do(d.worker, "POST "+lease, object{"artifacts": []object{{
			"artifact_id": "log", "name": "log", "parts": []object{textPart("Step 1 of 2 is done.")},
		}}})
		d.do(d.worker, "POST "+lease, object{"status": end, "message": object{
			"role": "agent", "parts": []object{textPart("It is " + end + ".")},
		}})
	}
	d.sendTask(runner, "job-5", "Wait for a worker.")
	d.taskUID = d.uidOf("job-1")
	if d.err == nil { // refused, for the page of the agent
		_, _, d.err = d.worker.call("POST ~/api/v1/agents/scout/claim", object{"worker": "lost"})
	}
}

func textPart(text string) object { return object{"type": "text", "text": text} }

// sendTask sends a task as user:admin.
func (d *seeding) sendTask(agent, id, text string) {
	out := d.do(d.root, "POST ~/a2a/"+agent, object{
		"jsonrpc": "2.0", "id": 1, "method": "tasks/send",
		"params": object{"id": id, "message": object{"role": "user", "parts": []object{textPart(text)}}},
	})
	if d.err == nil && out["error"] != nil {
		d.err = fmt.Errorf("send %s: %v", id, out["error"])
	}
}

// claim claims the next task and returns the line of the calls about it, without the method.
func (d *seeding) claim(worker api, agent, name string) string {
	out := d.do(worker, "POST ~/api/v1/agents/"+agent+"/claim", object{"worker": name, "wait_seconds": 5})
	list, _ := out["tasks"].([]any)
	if len(list) != 1 {
		if d.err == nil {
			d.err = fmt.Errorf("claim = %v, want one task", out)
		}
		return ""
	}
	return "~/api/v1/agents/" + agent + "/leases/" + list[0].(object)["lease"].(string)
}

// uidOf returns the uid of a seeded task.
func (d *seeding) uidOf(id string) string {
	list, _ := d.do(d.root, "GET /a2a/tasks?limit=100", nil)["tasks"].([]any)
	for _, t := range list {
		if t := t.(object); t["id"] == id {
			return t["uid"].(string)
		}
	}
	if d.err == nil {
		d.err = fmt.Errorf("there is no task %s", id)
	}
	return ""
}

// attackTasks adds tasks whose texts, names and files are hostile.
func (d *seeding) attackTasks() {
	say := func(where string) string {
		mark := "mark-" + where
		d.marks = append(d.marks, mark)
		return mark + " " + scriptText + "\n" + quoteText + "\n" + bidiText
	}
	id := "mark-task-id" + strings.ReplaceAll(quoteText, " ", "_")
	d.marks = append(d.marks, "mark-task-id", "mark-task-worker")
	d.sendTask(runner, id, say("task-message"))
	d.claim(d.worker, runner, "other") // job-5, which stays claimed
	lease := d.claim(d.worker, runner, "mark-task-worker <script>window.pwned=1</script>")
	d.do(d.worker, "POST "+lease, object{
		"status":  "failed",
		"message": object{"role": "agent", "parts": []object{textPart(say("task-failure"))}},
		"artifacts": []object{{
			"artifact_id": "out", "name": "mark-artifact " + scriptText, "parts": []object{
				textPart(say("task-artifact")),
				{"type": "file", "file": object{"name": "page.html", "mimeType": "text/html", "bytes": htmlFile}},
				{"type": "file", "file": object{"name": "image.svg", "mimeType": "image/svg+xml", "bytes": svgFile}},
				{"type": "file", "file": object{"name": "paper.pdf", "mimeType": "application/pdf", "bytes": pdfFile}},
			},
		}},
	})
	d.marks = append(d.marks, "mark-artifact")
	d.hostileTask, d.hostileUID = id, d.uidOf(id)
}

// Files that would run or render if a browser opened them as a page of the site, in base64.
const (
	htmlFile = "PHNjcmlwdD53aW5kb3cucHduZWQ9MTwvc2NyaXB0PnB3bmVk"
	svgFile  = "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciPjxzY3JpcHQ+d2luZG93LnB3bmVkPTE8L3NjcmlwdD48L3N2Zz4="
	pdfFile  = "JVBERi0xLjQKJWV2aWwK"
)
