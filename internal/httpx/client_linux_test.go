package httpx

import (
	"context"
	"net"
	"testing"
	"time"
)

// Received distinguishes a client that has closed its sending side from one that is gone.
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
			t.Fatal("read a byte from a client that sent none")
		}
		if _, err := server.Write([]byte("response")); err != nil {
			t.Errorf("%s: %v", name, err) // the first write always succeeds
		}
		if got := Received(WithConn(context.Background(), server), time.Minute); got != c.want {
			t.Errorf("%s: Received = %v, want %v", name, got, c.want)
		}
		if n := acknowledged(server).acked; c.want && n == 0 {
			t.Errorf("%s: acknowledged bytes = 0, want more", name)
		}
		_ = server.Close()
		_ = client.Close()
	}
}

// finished works before the connection is read.
func TestFinishedKnowsBeforeARead(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	if _, err := client.Write([]byte("request")); err != nil || finished(server) {
		t.Fatalf("err = %v, finished = %v, want nil and false", err, finished(server))
	}
	_ = client.Close()
	for deadline := time.Now().Add(10 * time.Second); !finished(server); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("finished = false for a client that is gone, want true")
		}
	}
}
