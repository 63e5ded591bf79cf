package rpcpooltest

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
)

// relay carries bytes both ways until both are done, or one breaks: a reset is
// passed on as a reset.
func relay(l *link, far net.Conn) {
	var wg sync.WaitGroup
	wg.Go(func() {
		l.settle() // a watch may still hold the reader
		carry(far, l.br, l.Conn, far)
	})
	carry(l.Conn, far, far, l.Conn)
	wg.Wait()
	_ = far.Close()
}

// carry copies from one end to the other. At the end of what comes it ends its
// own direction; at an error it ends both ends.
func carry(to net.Conn, from io.Reader, source, sink net.Conn) {
	_, err := io.Copy(to, from)
	switch {
	case err == nil:
		_ = closeWrite(sink)
	case errors.Is(err, syscall.ECONNRESET):
		reset(source)
		reset(sink)
	default:
		_ = source.Close()
		_ = sink.Close()
	}
}
