package main

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// event is a Server-Sent Event as a page gets it.
type event struct {
	kind, id string
	state    state
	attempts []attempt
	notices  []notice
}

// stream is an open event stream.
type stream struct {
	t     *testing.T
	lines *bufio.Scanner
	secrets,
	seen []string
}

// follow opens the event stream of a gateway.
func follow(t *testing.T, client *http.Client, url string, secrets []string, headers ...string) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/events", http.NoBody)
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := client.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { res.Body.Close() })
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Equal(t, "text/event-stream", res.Header.Get("Content-Type"))
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	return &stream{t: t, lines: lines, secrets: secrets}
}

// next gives the next event; false where the stream has ended.
func (s *stream) next() (e event, more bool) {
	s.t.Helper()
	for s.lines.Scan() {
		line := s.lines.Text()
		for _, secret := range s.secrets {
			assert.NotContains(s.t, line, secret)
		}
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "event":
			e.kind = value
		case "id":
			e.id = value
		case "data":
			var data struct {
				State    state
				Attempts []attempt
				Notices  []notice
			}
			require.NoError(s.t, json.Unmarshal([]byte(value), &data))
			e.state, e.attempts, e.notices = data.State, data.Attempts, data.Notices
		case "":
			s.seen = append(s.seen, e.kind)
			return e, true
		}
	}
	return e, false
}

// until gives the first event that fits.
func (s *stream) until(fits func(e event) bool) event {
	s.t.Helper()
	for {
		e, more := s.next()
		require.True(s.t, more, "the stream ended; seen: %v", s.seen)
		if fits(e) {
			return e
		}
	}
}

func rpcsOf(e event) []rpcState {
	if len(e.state.Chains) == 0 {
		return nil
	}
	return e.state.Chains[0].RPCs
}

// A page sees without asking that an RPC fails and cools, where the cursor goes, and
// each attempt with its verdict; nothing of it is secret.
func TestEventsTellOfAFailure(t *testing.T) {
	b := newBed(t)
	b.proxy("p1")
	r1 := b.Node("r1", rpcpooltest.Result("0x1"))
	b.List("8453", r1, b.Node("r2", rpcpooltest.Error(-32601, "method not found").Method("eth_odd"), rpcpooltest.Result("0x2")), b.Node("r3"))
	b.start("-chains", "8453")
	events := follow(t, b.client, b.url, b.Secrets())

	first := events.until(func(e event) bool { return e.kind == "state" })
	assert.Equal(t, "sticky", first.state.Mode)
	require.Len(t, first.state.Proxies, 1)
	assert.True(t, first.state.Proxies[0].Current)
	assert.Empty(t, rpcsOf(first), "a chain is shown before it is called, without RPCs")
	assert.Equal(t, "/8453", first.state.Chains[0].Path)

	b.call("8453", "eth_blockNumber")
	ready := events.until(func(e event) bool { return len(rpcsOf(e)) == 3 && rpcsOf(e)[0].Served == 1 })
	assert.True(t, rpcsOf(ready)[0].Current)
	assert.False(t, rpcsOf(ready)[0].Cooling)
	assert.Equal(t, uint64(1000), rpcsOf(ready)[0].Head)
	assert.Equal(t, "ready", rpcsOf(ready)[0].State)
	assert.Positive(t, rpcsOf(ready)[0].Mean)
	assert.Positive(t, rpcsOf(ready)[0].P95)

	r1.Kill()
	b.call("8453", "eth_blockNumber")
	failed := events.until(func(e event) bool { return len(rpcsOf(e)) == 3 && rpcsOf(e)[0].Cooling })
	assert.Equal(t, "http://r1.test/***", rpcsOf(failed)[0].RPC)
	assert.InDelta(t, time.Now().Add(60*time.Second).UnixMilli(), rpcsOf(failed)[0].Until, 20_000)
	assert.Equal(t, 1, rpcsOf(failed)[0].FailuresInRow)
	assert.Equal(t, uint64(1), rpcsOf(failed)[0].Transport)
	assert.Equal(t, "cooling", rpcsOf(failed)[0].State)
	assert.Equal(t, uint64(1), rpcsOf(failed)[0].Ejections)

	b.call("8453", "eth_odd")
	marked := events.until(func(e event) bool { return len(rpcsOf(e)) == 3 && len(rpcsOf(e)[1].Unsupported) > 0 })
	assert.True(t, rpcsOf(marked)[1].Current)
	assert.Equal(t, []string{"eth_odd"}, rpcsOf(marked)[1].Unsupported)
	assert.Equal(t, uint64(3), marked.state.Served)

	// The same in one answer, for who can't have events.
	got := b.do(http.MethodGet, "/status.json", "")
	var status struct {
		State    state
		Attempts []attempt
	}
	require.NoError(t, json.Unmarshal([]byte(got.body), &status))
	assert.Equal(t, marked.state.Chains[0].RPCs[1].RPC, status.State.Chains[0].RPCs[1].RPC)
	var verdicts []string
	for _, a := range status.Attempts {
		verdicts = append(verdicts, a.RPC+" "+a.Method+" "+a.Verdict)
	}
	assert.Equal(t, []string{
		"http://r1.test/*** eth_blockNumber ok",
		"http://r1.test/*** eth_blockNumber conn_fail",
		"http://r2.test/*** eth_blockNumber ok",
		"http://r2.test/*** eth_odd unsupported",
		"http://r3.test/*** eth_odd ok",
	}, verdicts)
}

// A page that comes back gets the attempts that it has missed, and no others; one
// that comes back to another run of the gateway gets all.
func TestEventsResume(t *testing.T) {
	b := newBed(t)
	b.proxy("p1")
	b.List("8453", b.Node("r1"))
	b.start()
	attemptsOf := func(headers ...string) event {
		return follow(t, b.client, b.url, b.Secrets(), headers...).until(func(e event) bool { return e.kind == "attempts" })
	}
	b.call("8453", "eth_a")
	seen := attemptsOf()
	require.Len(t, seen.attempts, 1)
	b.call("8453", "eth_b")
	missed := attemptsOf("Last-Event-ID", seen.id)
	require.Len(t, missed.attempts, 1)
	assert.Equal(t, "eth_b", missed.attempts[0].Method)
	for _, id := range []string{"", "x", "-", "1234-1", seen.id + "x"} {
		assert.Len(t, attemptsOf("Last-Event-ID", id).attempts, 2, id)
	}
}

// Streams are bounded, and end with the gateway instead of holding it up.
func TestEventsEnd(t *testing.T) {
	b := newBed(t)
	b.proxy("p1")
	b.start()
	var streams []*stream
	for range maxWatchers {
		streams = append(streams, follow(t, b.client, b.url, nil))
	}
	assert.Equal(t, http.StatusServiceUnavailable, b.do(http.MethodGet, "/events", "").status)
	start := time.Now()
	b.end()
	assert.Less(t, time.Since(start), grace/2)
	for _, s := range streams {
		for {
			if _, more := s.next(); !more {
				break
			}
		}
	}
}

// bubbled is a gateway in a world in memory, for tests in a bubble.
type bubbled struct {
	*rpcpooltest.World
	client *http.Client
	cancel context.CancelFunc
	ended  chan struct{}
}

const bubbledURL = "http://gateway.test"

func newBubbled(t *testing.T, w *rpcpooltest.World) *bubbled {
	j := newJournal(newOutput(), false)
	config := w.Config()
	config.Logger = slog.New(j)
	pool, err := rpcpool.New(config)
	require.NoError(t, err)
	listener, err := w.Network.Listen("gateway.test:80")
	require.NoError(t, err)
	g := newGateway(&options{hosts: []string{"gateway.test"}, limit: defaultLimit, maxBody: defaultMaxBody}, pool, j)
	ctx, cancel := context.WithCancel(context.Background())
	b := &bubbled{World: w, cancel: cancel, ended: make(chan struct{})}
	b.client = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		return w.Network.DialContext(ctx, network, addr)
	}}}
	go func() {
		defer close(b.ended)
		serve(ctx, g, listener)
		pool.Close()
	}()
	t.Cleanup(func() {
		cancel()
		<-b.ended
		b.client.CloseIdleConnections()
	})
	return b
}

func (b *bubbled) call(method string) (int, error) {
	res, err := b.client.Post(bubbledURL+"/8453", "application/json", strings.NewReader(request(1, method)))
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}

// The end of a cooldown is told when it comes, though nothing happens; and where
// nothing changes the stream still shows that it is alive.
func TestEventsTellOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := rpcpooltest.New(t)
		w.Proxy("p1")
		w.List("8453", w.Node("r1", rpcpooltest.Status(500).Times(1)), w.Node("r2"))
		b := newBubbled(t, w)
		status, err := b.call("eth_blockNumber")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, status)

		start := time.Now()
		events := follow(t, b.client, bubbledURL, w.Secrets())
		require.True(t, rpcsOf(events.until(func(e event) bool { return e.kind == "state" }))[0].Cooling)
		events.until(func(e event) bool { return e.kind == "beat" })
		assert.InDelta(t, 15, time.Since(start).Seconds(), 1.5)
		ended := events.until(func(e event) bool { return e.kind == "state" })
		assert.False(t, rpcsOf(ended)[0].Cooling)
		assert.InDelta(t, 60, time.Since(start).Seconds(), 1.5)
		assert.Equal(t, []string{"state", "attempts", "beat", "beat", "beat", "state"}, events.seen)
	})
}

// However much happens, a page is told only a few times a second.
func TestEventsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := rpcpooltest.New(t)
		w.Proxy("p1")
		w.List("8453", w.Node("r1", rpcpooltest.Result("0x1").Delay(time.Millisecond)))
		b := newBubbled(t, w)
		events := follow(t, b.client, bubbledURL, w.Secrets())
		start := time.Now()
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 1000 {
				_, _ = b.call("eth_blockNumber")
			}
		}()
		last := events.until(func(e event) bool { return len(rpcsOf(e)) == 1 && rpcsOf(e)[0].Served == 1000 })
		<-done
		require.NotZero(t, last.state.Started)
		assert.GreaterOrEqual(t, time.Since(start), time.Second)
		assert.LessOrEqual(t, len(events.seen), 2+2*int(time.Since(start)/eventPause+1))
	})
}

// When a signal comes, requests that are under way get their answer; new ones don't
// get in, and health checks fail.
func TestServeEndsGracefully(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := rpcpooltest.New(t)
		w.Proxy("p1")
		w.List("8453", w.Node("r1", rpcpooltest.Result("0x1").Delay(5*time.Second)))
		b := newBubbled(t, w)
		answered := make(chan int, 1)
		go func() {
			status, _ := b.call("eth_blockNumber")
			answered <- status
		}()
		synctest.Wait()
		start := time.Now()
		b.cancel()
		assert.Equal(t, http.StatusOK, <-answered)
		<-b.ended
		assert.InDelta(t, 5, time.Since(start).Seconds(), 1)
		_, err := b.call("eth_blockNumber")
		assert.Error(t, err)
	})
}

// A request that doesn't end doesn't hold the program up for ever.
func TestServeEndsStuckRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := rpcpooltest.New(t)
		w.Proxy("p1")
		w.List("8453", w.Node("r1", rpcpooltest.Hang()))
		b := newBubbled(t, w)
		answered := make(chan error, 1)
		go func() {
			_, err := b.call("eth_blockNumber")
			answered <- err
		}()
		synctest.Wait()
		start := time.Now()
		b.cancel()
		<-b.ended
		assert.InDelta(t, grace.Seconds(), time.Since(start).Seconds(), 3)
		assert.Error(t, <-answered)
	})
}
