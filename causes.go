package rpcpool

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"syscall"
)

// causeText says what an error of a connection means, in words of our own: texts
// of net/http quote URLs and what the remote sent.
func causeText(err error) string {
	var (
		record   tls.RecordHeaderError
		verify   *tls.CertificateVerificationError
		hostname x509.HostnameError
		unknown  x509.UnknownAuthorityError
		invalid  x509.CertificateInvalidError
		alert    tls.AlertError
	)
	switch {
	case errors.As(err, &hostname):
		return "the certificate is for another host"
	case errors.As(err, &unknown):
		return "the certificate is signed by an unknown authority"
	case errors.As(err, &invalid):
		return "the certificate has expired or is invalid"
	case errors.As(err, &verify):
		return "the certificate can't be verified"
	case errors.As(err, &record):
		return "the other side doesn't speak TLS"
	case errors.As(err, &alert):
		return "the other side refused the TLS handshake"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection reset"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, io.ErrClosedPipe),
		errors.Is(err, net.ErrClosed), isServerClosedIdle(err):
		return "connection closed"
	}
	return "not an HTTP answer, or not in order"
}
