package rpcpool

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bomzrpc/rpcpool/internal/proxydial"
)

// lateDial is how long a dial may go on after the end of an attempt that was served over
// another connection.
const lateDial = 3 * time.Second

// lateDials are the dials through one proxy that outlive their attempts, each of which went
// over a connection that came free while it waited. The next attempt has what they bring: in
// a crowd that waits for connections nearly every dial would else be given up just before it
// is of use. They are few, and end soon, so that a proxy that hangs has no heap of them.
type lateDials struct {
	most int64
	n    atomic.Int64
}

func (l *lateDials) take() bool {
	if l.n.Add(1) > l.most {
		l.n.Add(-1)
		return false
	}
	return true
}

func (l *lateDials) giveBack() { l.n.Add(-1) }

// endWith has a dial end with its attempt, or later where it may. stop is called when the dial
// is over.
func (l *lateDials) endWith(attempt *proxydial.Attempt, end func()) (stop func()) {
	var mu sync.Mutex // protects what follows
	var timer *time.Timer
	over := false
	forget := context.AfterFunc(attempt.Own(), func() {
		if !attempt.Served() || !l.take() {
			end()
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if over {
			l.giveBack()
			return
		}
		timer = time.AfterFunc(lateDial, end)
	})
	return func() {
		if forget() {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		over = true
		if timer != nil {
			timer.Stop()
			l.giveBack()
		}
	}
}
