package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
)

// conn is a minimal HTTP/1.1 client: one kept-alive connection, prepared requests, responses read
// to their end. The client of net/http costs more than the servers it would measure.
type conn struct {
	net.Conn
	r *bufio.Reader
}

func dial(addr string) (*conn, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, r: bufio.NewReaderSize(c, 64<<10)}, nil
}

// request encodes a request. An empty body means none; headers are "Name: value".
func request(method, host, path, key, body string, headers ...string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, path, host)
	if key != "" {
		fmt.Fprintf(&b, "Authorization: Bearer %s\r\n", key)
	}
	for _, h := range headers {
		b.WriteString(h + "\r\n")
	}
	if body != "" {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n" + body)
	return b.Bytes()
}

// do sends a request and reads the response. The body is appended to into unless that is nil.
func (c *conn) do(req []byte, into *bytes.Buffer) (status int, err error) {
	if _, err := c.Write(req); err != nil {
		return 0, err
	}
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if len(line) < 12 {
		return 0, fmt.Errorf("status line %q", line)
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, fmt.Errorf("status line %q", line)
	}
	length, chunked, err := c.header()
	if err != nil {
		return status, err
	}
	switch {
	case chunked:
		return status, c.chunks(into)
	case length > 0:
		return status, c.take(length, into)
	case length < 0 && status != 204 && status != 304:
		return status, errors.New("a response without Content-Length")
	}
	return status, nil
}

func (c *conn) header() (length int, chunked bool, err error) {
	length = -1
	for {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return 0, false, err
		}
		switch {
		case len(line) <= 2:
			return length, chunked, nil
		case hasName(line, "content-length:"):
			v := strings.TrimSpace(string(line[len("content-length:"):]))
			if length, err = strconv.Atoi(v); err != nil {
				return 0, false, err
			}
		case hasName(line, "transfer-encoding:"):
			chunked = true
		}
	}
}

func hasName(line []byte, name string) bool {
	return len(line) > len(name) && bytes.EqualFold(line[:len(name)], []byte(name))
}

func (c *conn) chunks(into *bytes.Buffer) error {
	for {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return err
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(line)), 16, 32)
		if err != nil {
			return err
		}
		if err := c.take(int(n), into); err != nil {
			return err
		}
		if _, err := c.r.Discard(2); err != nil || n == 0 {
			return err
		}
	}
}

func (c *conn) take(n int, into *bytes.Buffer) error {
	if into == nil {
		_, err := c.r.Discard(n)
		return err
	}
	_, err := io.CopyN(into, c.r, int64(n))
	return err
}
