package app

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestQueueMetrics: tasks that wait are counted by whether their agent has a worker.
func TestQueueMetrics(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			cfg := fixtureConfig(t, engine)
			s := startServer(t, cfg)
			t.Cleanup(func() { _ = s.Shutdown() })
			key := s.First().Secret
			const org = "/api/v1/orgs/main"
			for _, id := range []string{"away", "there"} {
				if code, body := post(t, s.URL()+org+"/agents", key, `{"id":"`+id+`","name":"A"}`); code != 201 {
					t.Fatal(code, body)
				}
			}
			code, body := post(t, s.URL()+org+"/keys", key, `{"principal":"agent:there","name":"w","scopes":["svc:a2a:serve"]}`)
			if code != 201 {
				t.Fatal(code, body)
			}
			worker := decoded(t, []byte(body)).(map[string]any)["secret"].(string)
			if code, body := post(t, s.URL()+"/api/v1/agents/there/claim", worker,
				`{"worker":"host-1","max":1,"wait_seconds":0}`); code != 200 {
				t.Fatal(code, body)
			}
			for _, id := range []string{"away", "away", "there"} {
				if code, body := post(t, s.URL()+"/a2a/"+id, key, `{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{
					"message":{"role":"user","parts":[{"type":"text","text":"hello"}]}}}`); code != 200 {
					t.Fatal(code, body)
				}
			}
			want := map[string]float64{
				`parley_tasks_waiting{class="offline"}`: 2, `parley_tasks_waiting{class="online"}`: 1,
			}
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
				if err := s.countTasks(t.Context()); err != nil {
					t.Fatal(err)
				}
				_, text := get(t, s.URL()+"/metrics", "")
				off := ""
				for name, n := range want {
					if got := metricOf(text, name); got != n {
						off += name + " "
					}
				}
				for _, class := range queueClasses {
					if age := metricOf(text, `parley_tasks_waiting_seconds{class="`+class+`"}`); age <= 0 || age > 120 {
						off += "age of " + class
					}
				}
				if off == "" {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("%s differ:\n%s", off, strings.Join(regexp.MustCompile(`parley_tasks_w.*`).FindAllString(text, -1), "\n"))
				}
			}
			_, text := get(t, s.URL()+"/metrics", "")
			if !strings.Contains(text, "parley_task_leases_expired_total 0") {
				t.Error("no parley_task_leases_expired_total")
			}
			for _, name := range []string{"parley_store_database_bytes", "parley_store_wal_bytes", "parley_store_free_bytes"} {
				if n := metricOf(text, name); n <= 0 != (engine == "postgres") {
					t.Errorf("%s = %v", name, n)
				}
			}
		})
	}
}

// metricOf returns the value of a metric, or -1 if it is missing.
func metricOf(text, name string) float64 {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err == nil {
				return n
			}
		}
	}
	return -1
}
