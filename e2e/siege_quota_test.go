package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestSiegeMailbox fills a mailbox: each sender can use only its share.
func TestSiegeMailbox(t *testing.T) {
	eachSiege(t, func(t *testing.T, s *siege) {
		say := strings.Repeat("x", 20<<10)
		accepted := 0
		for i := range 1100 {
			res, b := s.attack(t, "/a2a/"+s.prey.agent, envelope("message/send", object{"message": text(fmt.Sprint(say, i))}))
			if res == nil {
				return
			}
			if res.StatusCode == http.StatusOK {
				accepted++
				continue
			}
			var a rpcAnswer
			if err := json.Unmarshal(b, &a); err != nil || a.Error == nil || a.Error.Code != -32004 ||
				!bytes.Contains(a.Error.Data, []byte(`"message.sender_share"`)) || res.Header.Get("Retry-After") == "" {
				t.Fatalf("message %d: got %s %v, want error -32004 message.sender_share with Retry-After: %s", i, res.Status,
					res.Header, b)
			}
		}
		if accepted != 1000 {
			t.Errorf("%d messages of one sender wait; want 1,000", accepted)
		}
		a, err := s.honest.call(t.Context(), s.prey.agent, "message/send", object{"message": text("hello")})
		if err != nil || a.Error != nil {
			t.Errorf("message of another sender: got %+v, %v; want no error", a.Error, err)
		}
	}, "--rate-limit", "0")
}

// TestSiegeCard has three orgs fill the platform's card, with twenty readers at once.
func TestSiegeCard(t *testing.T) {
	frontSiege(t, func(t *testing.T, s *siege) {
		description := strings.Repeat("d", 1900)
		var wg sync.WaitGroup
		for _, org := range []string{"m1", "m2", "m3"} {
			s.cli(t, "org", "create", org)
			s.cli(t, "user", "create", "root", "--org", org, "--admin")
			key := s.newKey(t, org, "user:root", "svc:admin:admin")
			for part := range 2 {
				wg.Go(func() {
					for i := range 500 {
						res, err := post(t.Context(), s.base+"/api/v1/orgs/"+org+"/agents", key,
							object{"id": fmt.Sprintf("%s-%d-%d", org, part, i), "name": "A", "description": description, "public": true})
						if err != nil {
							t.Error(err)
							return
						}
						_ = res.Body.Close()
						if res.StatusCode != http.StatusCreated {
							t.Errorf("create an agent: status = %s, want 201", res.Status)
							return
						}
					}
				})
			}
			wg.Wait()
			res, err := post(t.Context(), s.base+"/api/v1/orgs/"+org+"/agents", key, object{"id": org + "-more", "name": "A"})
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if res.StatusCode != http.StatusConflict || !bytes.Contains(b, []byte(`"quota.agents"`)) {
				t.Errorf("agent 1,001 of an org: got %s, want 409 quota.agents: %s", res.Status, b)
			}
		}
		read := func(key, query string) (size int, next string, ids []string) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+"/.well-known/agent.json"+query, nil)
			if err != nil {
				t.Error(err)
				return 0, "", nil
			}
			if key != "" {
				req.Header.Set("Authorization", "Bearer "+key)
			}
			res, err := taskClient.Do(req)
			if err != nil {
				t.Error(err)
				return 0, "", nil
			}
			defer func() { _ = res.Body.Close() }()
			b, err := io.ReadAll(res.Body)
			var card struct {
				Agents []struct{ ID string }
				Next   string
			}
			if err != nil || res.StatusCode != http.StatusOK || json.Unmarshal(b, &card) != nil {
				t.Errorf("card: got %s, %v; want 200", res.Status, err)
			}
			for _, a := range card.Agents {
				ids = append(ids, a.ID)
			}
			return len(b), card.Next, ids
		}
		for _, key := range []string{"", s.attacker.key} {
			for range 20 {
				wg.Go(func() {
					for range 15 {
						if size, _, _ := read(key, ""); size > 1100<<10 {
							t.Errorf("page has %d bytes, want at most %d", size, 1100<<10)
						}
					}
				})
			}
			wg.Wait()
		}
		// The pages list every agent once, the caller's own first.
		seen := map[string]bool{}
		for query := ""; ; {
			_, next, ids := read("", query)
			for _, id := range ids {
				if seen[id] {
					t.Errorf("%s is on two pages, want one", id)
				}
				seen[id] = true
			}
			if next == "" {
				break
			}
			query = "?after=" + next
		}
		if len(seen) < 3002 || !seen[s.prey.agent] || !seen["echo"] {
			t.Errorf("got %d agents on all pages, want at least 3002 with the own one and echo", len(seen))
		}
		if _, _, ids := read(s.prey.sender, ""); len(ids) == 0 || ids[0] != s.prey.agent {
			t.Errorf("own agent is not first of %d, want it first", len(ids))
		}
	}, "--rate-limit", "0", "--max-public-agents", "0")
}

// TestSiegeTasks sends tasks to an agent without workers until the sender's quota is used up.
func TestSiegeTasks(t *testing.T) {
	eachSiege(t, func(t *testing.T, s *siege) {
		accepted, refused := 0, 0
		for i := range 300 {
			res, b := s.attack(t, "/a2a/"+s.prey.agent,
				envelope("tasks/send", object{"id": fmt.Sprint("t", i), "message": text("x")}))
			switch {
			case res == nil:
				return
			case res.StatusCode == http.StatusOK:
				accepted++
			case res.StatusCode == http.StatusTooManyRequests && res.Header.Get("Retry-After") != "" &&
				bytes.Contains(b, []byte(`-32004`)) && bytes.Contains(b, []byte(`"quota.live_tasks"`)):
				refused++
			default:
				t.Fatalf("task %d: got %s, want it accepted or quota.live_tasks: %s", i, res.Status, b)
			}
		}
		if accepted < 90 || accepted > 110 || refused == 0 {
			t.Errorf("%d tasks were accepted and %d refused, want about 100 accepted", accepted, refused)
		}
		// A retry is not a new task, and a task that ends frees its place.
		if v, err := s.attacker.send(t.Context(), s.prey.agent, "t0", "x"); err != nil || v.ID != "t0" {
			t.Errorf("retry = %+v, %v; want task t0", v, err)
		}
		for i := range 20 {
			must(s.attacker.task(t.Context(), s.prey.agent, "tasks/cancel", object{"id": fmt.Sprint("t", i)}))(t)
		}
		eventually(t, soon, "there is room again", func() bool {
			_, err := s.attacker.send(t.Context(), s.prey.agent, "more", "x")
			return err == nil
		})
	}, "--rate-limit", "0", "--max-live-tasks", "100")
}

// stall is a set of receivers that do not respond until the test ends.
type stall struct {
	urls    []string
	waiting atomic.Int64
	most    atomic.Int64 // most requests that waited at the same time
}

func newStall(t *testing.T, n int) *stall {
	t.Helper()
	s, end := &stall{}, make(chan struct{})
	for range n {
		srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			now := s.waiting.Add(1)
			defer s.waiting.Add(-1)
			for most := s.most.Load(); now > most && !s.most.CompareAndSwap(most, now); most = s.most.Load() {
			}
			select {
			case <-end:
			case <-r.Context().Done():
			}
		}))
		t.Cleanup(srv.Close)
		s.urls = append(s.urls, srv.URL)
	}
	t.Cleanup(func() { close(end) })
	return s
}

// TestSiegePushes has two hundred pushes of one org go to fifty receivers that stall,
// beside another org's pushes.
func TestSiegePushes(t *testing.T) {
	eachSiege(t, func(t *testing.T, s *siege) {
		st, fine := newStall(t, 50), newReceiver(t)
		send := func(p peer, agent, id, url string) {
			t.Helper()
			a, err := p.call(t.Context(), agent, "SendMessage", object{
				"message":       object{"messageId": id, "role": "ROLE_USER", "parts": []object{{"text": "hello"}}},
				"configuration": object{"returnImmediately": true, "taskPushNotificationConfig": object{"url": url}},
			}, "A2A-Version: 1.0")
			if err != nil || a.Error != nil {
				t.Fatalf("send %s: got %+v, %v; want no error", id, a.Error, err)
			}
		}
		for i := range 200 {
			send(s.attacker, s.prey.agent, fmt.Sprint("stall-", i), st.urls[i%len(st.urls)])
		}
		eventually(t, soon, "the stalling receivers hold their share", func() bool { return st.waiting.Load() >= 8 })
		start := time.Now()
		for i := range 5 {
			send(s.honest, "echo", fmt.Sprint("fine-", i), fine.url)
			fine.until(t, "the honest push", func(pushed) bool { return true })
		}
		t.Logf("five honest pushes took %v", time.Since(start))
		// An org has 8 slots in the fast lane, 16 in the slow one and 48 in the late one. A push that
		// reaches its timeout makes room for another. Briefly there are more if its receiver has not
		// noticed the end.
		const share = 8 + 16 + 48
		if n := st.most.Load(); n > 2*share {
			t.Errorf("up to %d pushes of one org were under way; want at most %d", n, share)
		}
		eventually(t, soon, "the stalling receivers still hold their share", func() bool {
			n := st.waiting.Load()
			return n >= 8 && n <= share
		})
	}, "--rate-limit", "0", "--push-allow", "127.0.0.1")
}

// TestSiegeReplays has the server push finished tasks over and over.
func TestSiegeReplays(t *testing.T) {
	eachSiege(t, func(t *testing.T, s *siege) {
		var received atomic.Int64
		sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			n, _ := io.Copy(io.Discard, r.Body)
			received.Add(n)
		}))
		t.Cleanup(sink.Close)
		ids := []string{"a", "b", "c"}
		for _, id := range ids {
			s.sendLarge(t, id)
			must(s.attacker.task(t.Context(), s.prey.agent, "tasks/cancel", object{"id": id}))(t)
		}
		sent, allowed, refused := 0, 0, 0
		keepOn(func() {
			for range 120 {
				i := sent
				sent++
				id, config := ids[i%len(ids)], fmt.Sprintf("c%d", i/10)
				if i%2 == 1 && refused == 0 { // a config deleted before its push arrives
					_, _ = s.attacker.call(t.Context(), s.prey.agent, "tasks/pushNotificationConfig/delete",
						object{"id": id, "pushNotificationConfigId": config})
				}
				res, b := s.attackOld(t, "/a2a/"+s.prey.agent, envelope("tasks/pushNotificationConfig/set", object{
					"taskId": id, "pushNotificationConfig": object{"id": config, "url": fmt.Sprint(sink.URL, "/", i)},
				}))
				switch {
				case res == nil:
					t.FailNow()
				case res.StatusCode == http.StatusOK && !bytes.Contains(b, []byte(`"error"`)):
					allowed++
				case res.StatusCode == http.StatusTooManyRequests && bytes.Contains(b, []byte(`"push.replay_limit"`)) &&
					res.Header.Get("Retry-After") != "":
					refused++
				case bytes.Contains(b, []byte("task.push_too_many")):
				default:
					t.Fatalf("set %d: got %s, want it accepted or task.push_too_many: %.300s", i, res.Status, b)
				}
			}
		})
		if allowed == 0 || refused == 0 {
			t.Errorf("%d configurations allowed and %d refused; want some of both", allowed, refused)
		}
		eventually(t, soon, "what was allowed arrives", func() bool { return received.Load() > 0 })
		t.Logf("%d allowed, %d refused, %d MiB received", allowed, refused, received.Load()>>20)
		if n := received.Load(); n > 64<<20 {
			t.Errorf("%d MiB were pushed; want at most 64 within the first minute", n>>20)
		}
	}, "--rate-limit", "0", "--push-allow", "127.0.0.1")
}

// attackOld is attack in version 0.3.
func (s *siege) attackOld(t *testing.T, path string, body any) (*http.Response, []byte) {
	t.Helper()
	res, err := post(t.Context(), s.base+path, s.attacker.key, body)
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
