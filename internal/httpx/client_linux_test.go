package httpx

import (
	"context"
	"net"
	"testing"
)

// Received tells a client that has closed its sending side from one that is gone.
func TestReceivedKnowsWhetherSomeoneReads(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for name, c := range map[string]struct {
		leave func(*net.TCPConn) error
		want  bool
	}{
		"half-closed": {(*net.TCPConn).CloseWrite, true},
		"closed":      {(*net.TCPConn).Close, false},
	} {
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.leave(client.(*net.TCPConn)); err != nil {
			t.Fatal(err)
		}
		if n, _ := server.Read(make([]byte, 1)); n != 0 {
			t.Fatal("read something")
		}
		if _, err := server.Write([]byte("response")); err != nil {
			t.Errorf("%s: %v", name, err) // the first write always succeeds
		}
		if got := Received(WithConn(context.Background(), server)); got != c.want {
			t.Errorf("%s: received %v", name, got)
		}
		_ = server.Close()
		_ = client.Close()
	}
}
