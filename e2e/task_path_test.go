package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
)

// testPaths uses a key for agent a alone with every spelling of a path that a proxy, a router or a
// decoder might take for another. No task may reach another agent, and a's own id counts only as
// it is written.
func testPaths(t *testing.T, p, admin peer) {
	body, err := json.Marshal(envelope("tasks/send", object{"message": text("hello")}))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"a", "a/"} {
		if status := rawPost(t, p, "/a2a/"+path, body); status != 200 {
			t.Errorf("POST /a2a/%s: %d, want 200", path, status)
		}
	}
	before := tasksOf(t, admin)
	for _, path := range []string{
		"/a2a/b", "/a2a/b/", "/a2a/B", "/a2a/%62", "/a2a/%62/", "/a2a/%2562", "/a2a/b%20", "/a2a/%20b", "/a2a/b%00",
		"/a2a/b%0a", "/a2a/b%09",
		"/a2a/b.", "/a2a/.b", "/a2a/b%2e", "/a2a/b..", "/a2a/b;", "/a2a/b;x=1", "/a2a/b?agent=a", "/a2a/b%3f", "/a2a/b%23a",
		"/a2a/b%2f",
		"/a2a/b%2F", "/a2a/b%5c", "/a2a/b\\", "/a2a/./b", "/a2a/a/../b", "/a2a/../a2a/b", "/a2a/a%2f..%2fb",
		"/a2a/a/%2e%2e/b", "/a2a/..%2fa2a%2fb",
		"/a2a//b", "//a2a/b", "/a2a/b//", "/A2A/b", "/a2a/a,b", "/a2a/a%2Cb", "/a2a/a%00b", "/a2a/*", "/a2a/%2a", "/a2a/",
		"/a2a", "/a2a/%62.c", "/a2a/b.C",
		"/a2a/A", "/a2a/%61", "/a2a/%41", "/a2a/a.", "/a2a/a%20", "/a2a/%20a", "/a2a/a%2f", "/a2a/./a", "/a2a//a", "/a2a/a//",
		"/a2a/a;", "/a2a/%EF%BD%81",
		"/a2a/" + strings.Repeat("a", 65), "/a2a/" + strings.Repeat("b", 5000),
	} {
		status := rawPost(t, p, path, body)
		if status/100 == 2 || status >= 500 {
			t.Errorf("POST %q: %d; want a refusal", path, status)
		}
	}
	if after := tasksOf(t, admin); after != before {
		t.Errorf("tasks = %s, want %s: a path reached an agent", after, before)
	}
}

// rawPost sends a path unchanged; an HTTP client would clean it first.
func rawPost(t *testing.T, p peer, path string, body []byte) int {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: parley\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		path, p.key, len(body), body)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("POST %q: %v", path, err)
	}
	defer func() { _ = res.Body.Close() }()
	return res.StatusCode
}

// tasksOf returns which agents of the org have tasks, and how many.
func tasksOf(t *testing.T, admin peer) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, admin.base+"/api/v1/orgs/home/a2a/tasks?limit=100",
		nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+admin.key)
	res, err := taskClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var page struct{ Tasks []struct{ Agent string } }
	if err := json.NewDecoder(res.Body).Decode(&page); err != nil || res.StatusCode != 200 {
		t.Fatalf("list the tasks of the org: got %d, %v; want 200", res.StatusCode, err)
	}
	n := map[string]int{}
	for _, task := range page.Tasks {
		n[task.Agent]++
	}
	return fmt.Sprint(n) // in the order of the keys
}
