package outbound

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
)

// Explain returns why a request failed, as text for the user who configured the URL. The texts come
// from a fixed list, because err can name the resolver, private hosts and addresses of this
// network. A name that does not exist and one that resolves to a private address get the same text,
// so that users cannot probe for private names.
func (g *Guard) Explain(err error) string {
	var refused *Refused
	var unknown *net.DNSError
	var certificate *tls.CertificateVerificationError
	var alert tls.AlertError
	var record tls.RecordHeaderError
	var timeout net.Error
	switch {
	case errors.As(err, &refused), errors.As(err, &unknown):
		return "its host name does not resolve to a public address" + g.remedy()
	case errors.As(err, &timeout) && timeout.Timeout():
		return "there was no response in time"
	case errors.As(err, &certificate):
		return "its certificate is not valid for its name, or is not issued by a trusted authority"
	case errors.As(err, &alert), errors.As(err, &record):
		return "the TLS handshake failed"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed before the response was complete"
	}
	return "the connection failed"
}
