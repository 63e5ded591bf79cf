package integration

import (
	"fmt"
	"net"
	"sync"
	"time"
)

// stallWatch notices when this machine stands still for so long that attempts run
// out of time for no fault of anybody. It excuses nothing: after failures it says
// where else to look.
type stallWatch struct {
	listener net.Listener

	mu     sync.Mutex // protects stalls
	stalls []string
}

var stalls stallWatch

// aStall is as long as the shortest attempts can hardly bear.
const aStall = time.Second

func startStallWatch() (err error) {
	if stalls.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	go stalls.answer()
	go stalls.watch()
	return nil
}

func (w *stallWatch) answer() {
	for {
		conn, err := w.listener.Accept()
		if err != nil {
			return
		}
		conn.Close()
	}
}

// watch connects over loopback ten times a second, until the process ends.
func (w *stallWatch) watch() {
	last := time.Now()
	for range time.Tick(100 * time.Millisecond) {
		conn, err := net.Dial("tcp", w.listener.Addr().String())
		if err == nil {
			conn.Close()
		}
		now := time.Now()
		if took := now.Sub(last); took > aStall {
			w.mu.Lock()
			w.stalls = append(w.stalls, fmt.Sprintf("%s, until %s", took.Round(time.Millisecond), now.Format(time.TimeOnly)))
			w.mu.Unlock()
		}
		last = now
	}
}

func (w *stallWatch) print() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, stall := range w.stalls {
		fmt.Println("!! the machine stood still for", stall, "- attempts that ran out of time then may be its doing")
	}
}
