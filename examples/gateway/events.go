package main

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The rhythm of the event stream.
const (
	// maxWatchers bounds how many streams are open at once.
	maxWatchers = 32
	// eventPause is the least time between two looks at the state: a busy gateway
	// has thousands of attempts a second, and nobody reads faster than this.
	eventPause = 250 * time.Millisecond
	// eventTick is how often the state is looked at where nothing was attempted:
	// cooldowns end, and requests begin, without an entry in the log.
	eventTick = time.Second
	// eventBeat is how long the stream is silent at most, so that a page knows
	// that it is still connected.
	eventBeat = 15 * time.Second
)

// watch is one page that follows the gateway.
type watch struct {
	gateway *gateway
	out     http.ResponseWriter
	seq     uint64 // of the last attempt that was sent
	state   []byte // as it was sent last
	sent    time.Time
}

// events streams the state and the attempts as Server-Sent Events: "state" with
// the whole state, whenever it has changed; "attempts" with those that are new;
// "beat" where nothing happens.
func (g *gateway) events(w http.ResponseWriter, r *http.Request) {
	if g.watchers.Add(1) > maxWatchers {
		g.watchers.Add(-1)
		refuse(w, http.StatusServiceUnavailable, "too many pages are open")
		return
	}
	defer g.watchers.Add(-1)
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no") // a reverse proxy must not collect events
	page := &watch{gateway: g, out: w, seq: g.seqOf(r.Header.Get("Last-Event-ID"))}
	tick := time.NewTicker(eventTick)
	defer tick.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select { // not sooner than eventPause after the last time
		case <-pause.C:
		case <-r.Context().Done():
			return
		case <-g.closing:
			return
		}
		news := g.journal.next() // asked first: what comes from now on is in it
		if page.tell(time.Now()) != nil {
			return
		}
		pause.Reset(eventPause)
		select {
		case <-news:
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-g.closing:
			return
		}
	}
}

// tell sends what has changed.
func (p *watch) tell(now time.Time) error {
	var b bytes.Buffer
	current := encode(p.gateway.state())
	if !bytes.Equal(current, p.state) {
		writeEvent(&b, "state", "", fmt.Appendf(nil, `{"now":%d,"state":%s}`, now.UnixMilli(), current))
		p.state = current
	}
	attempts, notices := p.gateway.journal.since(p.seq)
	if len(attempts) > 0 || p.sent.IsZero() {
		if len(attempts) > 0 {
			p.seq = attempts[len(attempts)-1].Seq
		}
		writeEvent(&b, "attempts", p.gateway.eventID(p.seq), encode(map[string]any{"attempts": orEmpty(attempts), "notices": orEmpty(notices)}))
	}
	if b.Len() == 0 && now.Sub(p.sent) >= eventBeat {
		writeEvent(&b, "beat", "", fmt.Appendf(nil, `{"now":%d}`, now.UnixMilli()))
	}
	if b.Len() == 0 {
		return nil
	}
	p.sent = now
	connection := http.NewResponseController(p.out)
	_ = connection.SetWriteDeadline(now.Add(writeTime)) // a page that doesn't read is given up
	if _, err := p.out.Write(b.Bytes()); err != nil {
		return err
	}
	return connection.Flush()
}

// writeEvent writes an event whose data is JSON, which has no line ends.
func writeEvent(b *bytes.Buffer, kind, id string, data []byte) {
	if id != "" {
		fmt.Fprintf(b, "id: %s\n", id)
	}
	fmt.Fprintf(b, "event: %s\ndata: %s\n\n", kind, data)
}

// eventID names an attempt, and the run of the gateway that it belongs to.
func (g *gateway) eventID(seq uint64) string {
	return strconv.FormatInt(g.started.UnixMilli(), 10) + "-" + strconv.FormatUint(seq, 10)
}

// seqOf gives the attempt that a page has seen last; 0 where it has seen none of
// this run.
func (g *gateway) seqOf(id string) uint64 {
	run, seq, _ := strings.Cut(id, "-")
	if run != strconv.FormatInt(g.started.UnixMilli(), 10) {
		return 0
	}
	n, err := strconv.ParseUint(seq, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// statusJSON gives all that the page shows at once: for pages that can't have
// events, and for programs.
func (g *gateway) statusJSON(w http.ResponseWriter, _ *http.Request) {
	attempts, notices := g.journal.since(0)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime))
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(encode(map[string]any{
		"now": time.Now().UnixMilli(), "state": g.state(),
		"attempts": orEmpty(attempts), "notices": orEmpty(notices),
	}), '\n'))
}

// orEmpty has an empty list marshal to [] instead of null.
func orEmpty[E any](list []E) []E {
	if list == nil {
		return []E{}
	}
	return list
}

// health tells a supervisor whether requests can be served: 503 where no proxy is
// left, or the gateway is ending.
func (g *gateway) health(w http.ResponseWriter, _ *http.Request) {
	select {
	case <-g.closing:
		refuse(w, http.StatusServiceUnavailable, "shutting down")
		return
	default:
	}
	for _, proxy := range g.pool.ProxyStats() {
		if !proxy.Cooling {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			fmt.Fprintln(w, "ok")
			return
		}
	}
	refuse(w, http.StatusServiceUnavailable, "every proxy is cooling down")
}
