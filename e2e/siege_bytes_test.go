package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"
)

// batchOf returns a JSON-RPC batch of n equal requests.
func batchOf(n int, method string, params any) []object {
	out := make([]object, n)
	for i := range out {
		out[i] = object{"jsonrpc": "2.0", "id": i, "method": method, "params": params}
	}
	return out
}

// attack posts a body as the attacker and returns the status and the response.
func (s *siege) attack(t *testing.T, path string, body any) (*http.Response, []byte) {
	t.Helper()
	res, err := post(t.Context(), s.base+path, s.attacker.key, body, "A2A-Version: 1.0")
	if err != nil {
		t.Error(err)
		return nil, nil
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return res, b
}

// mustShed checks that a response is a success or has Retry-After.
func mustShed(t *testing.T, res *http.Response) {
	t.Helper()
	switch {
	case res == nil, res.StatusCode == http.StatusOK:
	case res.StatusCode != http.StatusServiceUnavailable && res.StatusCode != http.StatusTooManyRequests:
		t.Errorf("status %s; want 200, 429 or 503", res.Status)
	case res.Header.Get("Retry-After") == "":
		t.Errorf("got %s without Retry-After, want the header", res.Status)
	}
}

// TestSiegeBatches gets a task of nearly 16 MiB fifty times in one batch, in several batches at
// once and in every dialect: one item gets the task, the others an error each.
func TestSiegeBatches(t *testing.T) {
	frontSiege(t, func(t *testing.T, s *siege) {
		s.sendLarge(t, "big")
		s.sayInBatch(t, "talk")
		keepOn(func() {
			var wg sync.WaitGroup
			for i := range siegeSize(6, 12) {
				wg.Go(func() { s.getInBatch(t, []string{"GetTask", "tasks/get"}[i%2], "big") })
			}
			wg.Wait()
		})
	})
}

// sayInBatch sends fifty messages to one task in one batch. Each is stored, so none may return an
// error, although the task is larger than a response may be.
func (s *siege) sayInBatch(t *testing.T, id string) {
	must(s.attacker.send(t.Context(), s.prey.agent, id, largest[:1<<20]))(t)
	batch := batchOf(50, "SendMessage", nil)
	for i := range batch {
		batch[i]["params"] = object{
			"message": object{
				"messageId": fmt.Sprint("m", i), "taskId": id, "role": "ROLE_USER",
				"parts": []object{{"text": fmt.Sprint(i)}},
			},
			"configuration": object{"historyLength": 0, "returnImmediately": true},
		}
	}
	res, b := s.attack(t, "/a2a/"+s.prey.agent, batch)
	if n := bytes.Count(b, []byte(`"result":`)); res == nil || n != 50 {
		t.Errorf("%d messages to a large task returned a result, want 50: %.300s", n, b)
	}
}

// getInBatch gets a task fifty times in one batch.
func (s *siege) getInBatch(t *testing.T, method, id string) {
	res, b := s.attack(t, "/a2a/"+s.prey.agent, batchOf(50, method, object{"id": id}))
	mustShed(t, res)
	if res == nil || res.StatusCode != http.StatusOK {
		return
	}
	tasks, refused := bytes.Count(b, []byte(`"result":`)), bytes.Count(b, []byte(`"error":`))
	named := bytes.Count(b, []byte(`"response.too_large"`)) + bytes.Count(b, []byte(`"server.busy"`))
	if tasks > 1 || tasks+refused != 50 || named != refused {
		t.Errorf("%s: %d items have the task and %d are refused, %d with a known code; want at most one and the rest",
			method, tasks, refused, named)
	}
}

// TestSiegeLists lists sixty large tasks, with and without their content.
func TestSiegeLists(t *testing.T) {
	eachSiege(t, func(t *testing.T, s *siege) {
		tasks := siegeSize(15, 60)
		for i := range tasks {
			must(s.attacker.send(t.Context(), s.prey.agent, fmt.Sprintf("t%d", i), largest))(t)
		}
		list := func(params object) (ids []string, size int) {
			seen := map[string]bool{}
			for token, tries := "", 0; ; tries++ {
				if tries > 500 {
					t.Errorf("got %d tasks after %d pages, want all after at most 500", len(ids), tries)
					return ids, size
				}
				params["pageToken"] = token
				res, b := s.attack(t, "/a2a/"+s.prey.agent, envelope("ListTasks", params))
				mustShed(t, res)
				if res == nil {
					return ids, size
				}
				if res.StatusCode != http.StatusOK {
					time.Sleep(50 * time.Millisecond)
					continue
				}
				var page struct {
					Result struct {
						Tasks         []struct{ ID string }
						NextPageToken string
						TotalSize     int
					}
				}
				if err := json.Unmarshal(b, &page); err != nil || len(page.Result.Tasks) == 0 || page.Result.TotalSize != tasks {
					t.Errorf("page of %d bytes: %d tasks of %d, want at least 1 of %d: %v %.200s", len(b), len(page.Result.Tasks),
						page.Result.TotalSize, tasks, err, b)
					return ids, size
				}
				size = max(size, len(b))
				for _, one := range page.Result.Tasks {
					if seen[one.ID] {
						t.Errorf("%s is listed twice, want once", one.ID)
					}
					seen[one.ID] = true
					ids = append(ids, one.ID)
				}
				if token = page.Result.NextPageToken; token == "" {
					return ids, size
				}
			}
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				ids, size := list(object{"pageSize": 100, "historyLength": 100, "includeArtifacts": true})
				if len(ids) != tasks || size > 20<<20 {
					t.Errorf("%d tasks in pages of up to %d bytes; want %d in pages of at most 20 MiB", len(ids), size, tasks)
				}
			})
		}
		wg.Wait()
		if ids, size := list(object{"pageSize": 100}); len(ids) != tasks || size > 64<<10 {
			t.Errorf("without content: %d tasks in %d bytes; want %d in at most 64 KiB", len(ids), size, tasks)
		}
	})
}

// TestSiegeStalledReaders opens streams of a large task and reads none of them.
func TestSiegeStalledReaders(t *testing.T) {
	frontSiege(t, func(t *testing.T, s *siege) {
		s.sendLarge(t, "big")
		for i := range siegeSize(60, 120) {
			s.openStalled(t, []string{"SubscribeToTask", "tasks/resubscribe"}[i%2], "big")
		}
		keepOn(func() { time.Sleep(time.Duration(siegeSize(0, 1000)) * time.Millisecond) }) // keep the stall up
		// A reader that does read gets all of it meanwhile.
		f := must(s.attacker.resubscribe(t.Context(), s.prey.agent, "big", 0))(t)
		defer f.close()
		must(f.next())(t) // submitted: readers do not get their own messages
		eventually(t, soon, "the stalled streams are open or refused", func() bool {
			return s.metric(t, "parley_http_requests_in_flight") < 2+s.metric(t, "parley_http_streams")
		})
	})
}

// openStalled opens a stream as the attacker and never reads it.
func (s *siege) openStalled(t *testing.T, method, id string) {
	t.Helper()
	body, err := json.Marshal(envelope(method, object{"id": id}))
	if err != nil {
		t.Fatal(err)
	}
	conn := s.dialSlow(t)
	if _, err := fmt.Fprintf(conn, "POST /a2a/%s HTTP/1.1\r\nHost: parley\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
		"A2A-Version: 1.0\r\nContent-Length: %d\r\n\r\n%s", s.prey.agent, s.attacker.key, len(body), body); err != nil {
		t.Fatal(err)
	}
}

// TestSiegeClaims sends an agent more messages and tasks than one response can hold.
func TestSiegeClaims(t *testing.T) {
	eachSiege(t, func(t *testing.T, s *siege) {
		for i := range 20 {
			must(s.attacker.send(t.Context(), s.prey.agent, fmt.Sprintf("t%d", i), largest))(t)
		}
		a, err := s.attacker.call(t.Context(), s.prey.agent, "message/send", object{"message": text(largest)})
		if err != nil || a.Error == nil || a.Error.Code != -32602 {
			t.Errorf("a direct message of 3.9 MiB: %+v, %v; want the error -32602", a.Error, err)
		}
		for i := range 100 {
			p := object{"message": text(fmt.Sprint(largest[:250<<10], i))}
			if a, err := s.attacker.call(t.Context(), s.prey.agent, "message/send", p); err != nil || a.Error != nil {
				t.Fatalf("message %d: got %+v, %v; want no error", i, a.Error, err)
			}
		}
		tasks, messages := 0, map[string]bool{}
		ack := []string{}
		for round := 0; tasks < 20 || len(messages) < 100; round++ {
			if round > 60 {
				t.Fatalf("got %d tasks and %d messages after %d claims, want all after at most 60", tasks, len(messages), round)
			}
			res, err := post(t.Context(), s.base+"/api/v1/agents/"+s.prey.agent+"/claim", s.prey.worker,
				object{"max": 100, "wait_seconds": 5, "lease_seconds": 600, "capacity": 100, "ack": ack})
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			mustShed(t, res)
			if len(b) > 20<<20 {
				t.Errorf("a claim has %d bytes; want at most 20 MiB", len(b))
			}
			var got struct {
				Tasks    []struct{ ID string }
				Messages []struct{ ID string }
			}
			if err := json.Unmarshal(b, &got); err != nil {
				t.Fatal(err)
			}
			tasks += len(got.Tasks)
			ack = []string{}
			for _, m := range got.Messages {
				messages[m.ID] = true
				ack = append(ack, m.ID)
			}
		}
	})
}
