package proxydial

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"
)

// Reason is what went wrong.
type Reason int

// The reasons.
const (
	// Unreachable: there is no connection to the proxy: refused, no route, its
	// name can't be resolved.
	Unreachable Reason = iota + 1
	// Timeout: a deadline passed: the attempt's, HandshakeTimeout, or the system's.
	Timeout
	// Closed: the connection ended or was reset before the answer was complete.
	Closed
	// Garbage: the answer isn't of the proxy's protocol.
	Garbage
	// AuthRefused: the SOCKS5 login was refused, no offered method was acceptable,
	// or the proxy chose a method that wasn't offered.
	AuthRefused
	// Reply: the proxy answered with a SOCKS code that isn't success, see Code.
	Reply
	// Status: the proxy answered CONNECT with a status that isn't 2xx, see
	// StatusCode.
	Status
	// BadTLS: TLS to the https:// proxy failed.
	BadTLS
	// BadTarget: the target isn't a host and port. Nothing was sent, and the Phase is
	// PhaseNone.
	BadTarget
	// AddressType: the target's address can't be said in the proxy's protocol, such
	// as an IPv6 address in SOCKS4. Nothing was sent, and the Phase is PhaseNone.
	AddressType
	// Canceled: the caller's or the attempt's context was canceled.
	Canceled
)

// Error is every failure of a [Dialer].
type Error struct {
	// Phase is where it happened.
	Phase Phase
	// Reason is what happened.
	Reason Reason
	// Code is the SOCKS code of a Reply.
	Code int
	// SOCKS4 says that Code is one of SOCKS4's (91, 92, 93), not of SOCKS5's.
	SOCKS4 bool
	// StatusCode is the HTTP status of a Status.
	StatusCode int
	// Header is the header of a CONNECT answer, as far as it came; may be nil. It
	// is the proxy's text, so no printed or JSON form of the Error shows it.
	Header http.Header
	// Err is the cause; may be nil. Where a context ended, its Err and its cause are
	// found in it by errors.Is. Its text may hold what the proxy sent.
	Err error
}

// Error says in which phase what happened, in words of its own: neither the
// proxy's URL nor anything that the proxy sent is in it.
func (e *Error) Error() string {
	if e.Reason == BadTarget || e.Reason == AddressType {
		return e.what()
	}
	return e.Phase.String() + ": " + e.what()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is lets every Timeout be found as [context.DeadlineExceeded], whichever clock
// noticed it first: a context's, HandshakeTimeout's or the connection's.
func (e *Error) Is(target error) bool {
	return e.Reason == Timeout && target == context.DeadlineExceeded
}

// Timeout tells whether a deadline passed.
func (e *Error) Timeout() bool { return e.Reason == Timeout }

// GoString gives the error's text, so that %#v doesn't show the fields.
func (e *Error) GoString() string { return e.Error() }

// MarshalJSON gives the error's text.
func (e *Error) MarshalJSON() ([]byte, error) { return json.Marshal(e.Error()) }

// findingError is a cause in words of this package: safe to show.
type findingError string

func (f findingError) Error() string { return string(f) }

func (e *Error) what() string {
	switch e.Reason {
	case Unreachable:
		return e.foundOr(whyUnreachable(e.Err))
	case Timeout:
		return "timed out"
	case Closed:
		return "the proxy closed the connection"
	case Garbage:
		return e.foundOr("the answer isn't of the proxy's protocol") + "; is the scheme in its URL right?"
	case AuthRefused:
		return e.foundOr("the proxy refused the login")
	case Reply:
		return "the proxy answered with " + replyMeaning(e.Code, e.SOCKS4)
	case Status:
		return "the proxy answered CONNECT with HTTP status " + statusMeaning(e.StatusCode)
	case BadTLS:
		return whyBadTLS(e.Err)
	case BadTarget:
		return e.foundOr("the target isn't a host and port")
	case AddressType:
		return e.foundOr("the target's address can't be asked of this proxy")
	case Canceled:
		return "canceled"
	default:
		return "failed"
	}
}

func (e *Error) foundOr(otherwise string) string {
	if f, ok := errors.AsType[findingError](e.Err); ok {
		return string(f)
	}
	return otherwise
}

func whyUnreachable(err error) string {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return "the proxy's host name can't be resolved"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "no route to the proxy"
	default:
		return "no connection to the proxy"
	}
}

func whyBadTLS(err error) string {
	var (
		notTLS    tls.RecordHeaderError
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &notTLS):
		return "the proxy doesn't speak TLS; is the scheme in its URL right?"
	case errors.As(err, &authority):
		return "the proxy's certificate is signed by an unknown authority"
	case errors.As(err, &name):
		return "the proxy's certificate is for another host name"
	case errors.As(err, &invalid):
		return "the proxy's certificate isn't valid"
	default:
		return "the TLS handshake failed"
	}
}

func replyMeaning(code int, socks4 bool) string {
	version, meaning := "SOCKS5", ""
	if socks4 {
		version = "SOCKS4"
		switch code {
		case 91:
			meaning = "request rejected or failed"
		case 92:
			meaning = "the proxy can't reach this machine's identd"
		case 93:
			meaning = "identd reports another user"
		}
	} else {
		switch code {
		case 1:
			meaning = "general failure"
		case 2:
			meaning = "not allowed by the proxy's rules"
		case 3:
			meaning = "network unreachable"
		case 4:
			meaning = "host unreachable"
		case 5:
			meaning = "connection refused"
		case 6:
			meaning = "TTL expired"
		case 7:
			meaning = "command not supported"
		case 8:
			meaning = "address type not supported"
		}
	}
	if meaning == "" {
		meaning = "of unknown meaning"
	}
	return version + " code " + strconv.Itoa(code) + " (" + meaning + ")"
}

func statusMeaning(code int) string {
	text := strconv.Itoa(code)
	if meaning := http.StatusText(code); meaning != "" {
		text += " (" + meaning + ")"
	}
	return text
}

// reasonOf judges an error of a connection, or of dialling one.
func reasonOf(phase Phase, err error) Reason {
	switch {
	case isTimeout(err):
		return Timeout
	case phase == PhaseDial:
		return Unreachable
	case phase == PhaseTLS && !isBroken(err):
		return BadTLS
	default:
		return Closed
	}
}

func isTimeout(err error) bool {
	var timeouter interface{ Timeout() bool }
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, &timeouter) && timeouter.Timeout()
}

// isBroken tells an ended or reset connection from a TLS failure upon one that
// works. Failed reads and writes are known by their Op, since the system's error
// numbers differ; TLS alerts come as an OpError with another Op.
func isBroken(err error) bool {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed} {
		if errors.Is(err, end) {
			return true
		}
	}
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "read" || op.Op == "write")
}
