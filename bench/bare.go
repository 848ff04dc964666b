package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
)

// submission is the body of a submit. The echo decodes and encodes only this.
type submission struct {
	Title        string `json:"title"`
	Category     string `json:"category"`
	Problem      string `json:"problem"`
	SuggestedFix string `json:"suggested_fix"`
	Priority     string `json:"priority"`
}

// ballot is the body of a vote.
type ballot struct {
	Vote    string `json:"vote"`
	Comment string `json:"comment"`
}

// answers are the responses of the bare server to GET: the bytes that Parley sent.
type answers struct{ List, Record []byte }

// startBare starts the bare server in its own process.
func startBare(ctx context.Context, a answers) (*process, error) {
	in, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return startServer(ctx, bytes.NewReader(in), "/ready", self, "bare")
}

// serveBare is the limit: net/http with nothing behind it. GET returns fixed bytes, POST the body
// that was sent. It checks no key, has no request ids and stores nothing.
func serveBare(in io.Reader, out io.Writer) error {
	var a answers
	if err := json.NewDecoder(in).Decode(&a); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ready", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /list", fixed(a.List))
	mux.HandleFunc("GET /record", fixed(a.Record))
	mux.HandleFunc("POST /submit", echo[submission])
	mux.HandleFunc("POST /vote", echo[ballot])
	mux.HandleFunc("POST /rpc", echo[rpcCall])
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "http://%s\n", l.Addr()); err != nil {
		return err
	}
	return http.Serve(l, mux)
}

func fixed(body []byte) http.HandlerFunc {
	length := strconv.Itoa(len(body))
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", length)
		_, _ = w.Write(body)
	}
}

func echo[T any](w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var v T
	if err := json.Unmarshal(body, &v); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	_, _ = w.Write(answer)
}
