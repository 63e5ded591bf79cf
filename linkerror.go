package rpcpool

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/bomzrpc/rpcpool/internal/proxydial"
)

// linkError is a request that got no answer.
type linkError struct {
	proxy    *proxydial.Error // the connection through the proxy failed; nil else
	phase    proxydial.Phase  // how far the connection was when time ran out
	timedOut bool
	reused   bool
	written  bool   // a part of the request may have been written
	received bool   // a part of the answer had come
	crowded  string // why it wasn't sent at all; empty where it was
	err      error

	unaffordable error // why it wasn't repeated although it died idle: a *BudgetError; else nil
}

func newLinkError(ctx context.Context, t *trip, err error) *linkError {
	failed := &linkError{err: withoutURL(err), received: t.received(), written: t.written()}
	errors.As(err, &failed.proxy)
	// The box of phases counts only as long as no connection was had: a request
	// can start a dial and then get a connection that came free.
	if t.conn.Load() != nil {
		failed.phase = proxydial.PhaseReady
		failed.reused = t.reused.Load()
	} else {
		failed.phase = t.attempt.Phase()
	}
	var timeout interface{ Timeout() bool }
	failed.timedOut = errors.Is(err, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded) ||
		(errors.As(err, &timeout) && timeout.Timeout())
	return failed
}

// diedIdle tells whether a kept connection turned out to be dead, with nothing
// received on it: nobody's fault (rule A5.3).
func (f *linkError) diedIdle() bool {
	return f.reused && !f.received && !f.timedOut && brokeOff(f.err)
}

func brokeOff(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) ||
		isServerClosedIdle(err)
}

// isServerClosedIdle asks by text, the only way: net/http doesn't export the
// error by which it says that the server closed a kept connection.
func isServerClosedIdle(err error) bool {
	const text = "http: server closed idle connection"
	for ; err != nil; err = errors.Unwrap(err) {
		if err.Error() == text {
			return true
		}
	}
	return false
}
