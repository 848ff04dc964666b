package a2a

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-dev/parley/internal/wire"
)

// maxBatch is the maximum number of requests in one body.
const maxBatch = 50

// request is one JSON-RPC request. Its slices are parts of the body.
type request struct {
	id     []byte // as it was sent, to be echoed; nil: a notification
	method string
	params []byte    // an object; nil: none
	err    *rpcError // set: it is not a valid request
}

var nullID = []byte("null")

type parser struct {
	dec  *jsontext.Decoder
	src  bytes.Buffer
	body []byte
}

var parsers = sync.Pool{New: func() any { return &parser{dec: new(jsontext.Decoder)} }}

// parse reads a body: one request, or a batch of them. The error is the response to a body that is
// neither.
func parse(body []byte, into []request) (reqs []request, batch bool, err *rpcError) {
	if wire.TooDeep(body) {
		return nil, false, newError(codeInvalidRequest,
			"the body is nested deeper than "+strconv.Itoa(wire.MaxDepth)+" levels")
	}
	p := parsers.Get().(*parser)
	defer func() {
		p.src, p.body = bytes.Buffer{}, nil
		parsers.Put(p)
	}()
	p.src, p.body = *bytes.NewBuffer(body), body
	p.dec.Reset(&p.src)
	reqs, batch, bad := p.read(into)
	var own *rpcError
	switch {
	case errors.As(bad, &own):
		return nil, false, own
	case bad != nil:
		return nil, false, newError(codeParse, syntaxMessage(bad))
	}
	if _, bad := p.dec.ReadToken(); bad != io.EOF {
		return nil, false, newError(codeParse, "the body must be one JSON value, but more follows")
	}
	return reqs, batch, nil
}

func syntaxMessage(err error) string {
	var syn *jsontext.SyntacticError
	if !errors.As(err, &syn) {
		return "the body is not valid JSON: it is empty or ends too early"
	}
	if errors.Is(syn.Err, jsontext.ErrDuplicateName) {
		return "a member occurs more than once, the second time at byte " + strconv.FormatInt(syn.ByteOffset, 10)
	}
	return "the body is not valid JSON at byte " + strconv.FormatInt(syn.ByteOffset, 10)
}

// idOf returns the id of the request in a body that is refused as a whole, or null if there is
// none.
func idOf(body []byte) []byte {
	var space [1]request
	reqs, batch, bad := parse(body, space[:0])
	if bad != nil || batch || reqs[0].id == nil {
		return nullID
	}
	return reqs[0].id
}

// maxRefused is the size up to which the body of a refused request is read for its id.
const maxRefused = 64 << 10

// idOfRefused returns the id of a request that is refused before its body is needed. A body that is
// large, of unknown length or not sent yet is not read.
func idOfRefused(w http.ResponseWriter, r *http.Request) []byte {
	if r.ContentLength <= 0 || r.ContentLength > maxRefused || r.Header.Get("Expect") != "" {
		return nullID
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRefused))
	if err != nil {
		return nullID
	}
	return idOf(body)
}

func (p *parser) read(into []request) ([]request, bool, error) {
	switch p.dec.PeekKind() {
	case '{':
		var req request
		err := p.request(&req)
		return append(into, req), false, err
	case '[':
		reqs, err := p.batch(into)
		return reqs, true, err
	}
	if err := p.dec.SkipValue(); err != nil {
		return nil, false, err
	}
	return nil, false, newError(codeInvalidRequest, "the body must be a request object, or an array of them")
}

func (p *parser) batch(reqs []request) ([]request, error) {
	if _, err := p.dec.ReadToken(); err != nil {
		return nil, err
	}
	for p.dec.PeekKind() != ']' {
		if len(reqs) == maxBatch {
			return nil, newError(codeInvalidRequest, "a batch has at most "+strconv.Itoa(maxBatch)+" requests")
		}
		var req request
		if p.dec.PeekKind() == '{' {
			if err := p.request(&req); err != nil {
				return nil, err
			}
		} else {
			if err := p.dec.SkipValue(); err != nil {
				return nil, err
			}
			req = request{id: nullID, err: newError(codeInvalidRequest, "a request must be an object")}
		}
		reqs = append(reqs, req)
	}
	if len(reqs) == 0 {
		return nil, newError(codeInvalidRequest, "a batch must have at least one request")
	}
	_, err := p.dec.ReadToken()
	return reqs, err
}

// request reads one object. Members that are not in JSON-RPC are ignored.
func (p *parser) request(req *request) error {
	if _, err := p.dec.ReadToken(); err != nil {
		return err
	}
	var version, name, params jsontext.Value
	for p.dec.PeekKind() == '"' {
		member, err := p.value()
		if err != nil {
			return err
		}
		v, err := p.value()
		if err != nil {
			return err
		}
		switch string(member) {
		case `"jsonrpc"`:
			version = v
		case `"method"`:
			name = v
		case `"params"`:
			params = v
		case `"id"`:
			req.id = v
		}
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return err
	}
	req.check(version, name, params)
	return nil
}

// value reads a value and returns it as a slice of the body, which outlives the decoder's buffer.
func (p *parser) value() (jsontext.Value, error) {
	v, err := p.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	end := p.dec.InputOffset()
	return p.body[end-int64(len(v)) : end], nil
}

// check fills in the rest of a request, or sets its error. An invalid envelope gets a response even
// without an id: its sender may not know about notifications.
func (req *request) check(version, name, params jsontext.Value) {
	switch req.idKind() {
	case 0, '"', '0', 'n':
	default:
		req.id = nullID
		req.fail("id must be a string, a number or null")
	}
	if string(version) != `"2.0"` {
		req.fail(`jsonrpc must be "2.0"`)
	}
	if name.Kind() != '"' {
		req.fail("method must be a string")
	} else if bytes.IndexByte(name, '\\') < 0 {
		req.method = string(name[1 : len(name)-1])
	} else {
		unquoted, _ := jsontext.AppendUnquote(nil, name)
		req.method = string(unquoted)
	}
	switch {
	case params == nil:
	case params.Kind() == '{':
		req.params = params
	case params.Kind() == '[' && req.err == nil:
		req.err = newError(codeInvalidParams, "params must be an object; positional params are not supported")
	default:
		req.fail("params must be an object")
	}
	if req.err != nil && req.id == nil {
		req.id = nullID
	}
}

func (req *request) idKind() jsontext.Kind {
	if req.id == nil {
		return 0
	}
	return jsontext.Value(req.id).Kind()
}

func (req *request) fail(msg string) {
	if req.err == nil {
		req.err = newError(codeInvalidRequest, msg)
	}
}
