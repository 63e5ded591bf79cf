package sdk

import (
	"bytes"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/bomzrpc/rpcpool/rpcpooltest"
	"github.com/stretchr/testify/require"
)

// endpoint is an RPC in front of the real node: it hands requests on, and answers
// byte for byte what the node says; or fails at random.
type endpoint struct {
	*rpcpooltest.Node
	behind *realNode
	faulty bool

	mu       sync.Mutex // protects what follows
	rand     *rand.Rand
	injected map[string]int
}

// faults are the ways in which a faulty endpoint fails, besides those of chaos.
// Some lose the answer to a request that the node has had.
var faults = []struct {
	name   string
	weight int
	reply  func(e *endpoint, request rpcpooltest.Request) rpcpooltest.Reply
}{
	{"hung", 1, func(*endpoint, rpcpooltest.Request) rpcpooltest.Reply { return rpcpooltest.Hang() }},
	{"hung, the node had it", 1, func(e *endpoint, r rpcpooltest.Request) rpcpooltest.Reply { e.handOn(r); return rpcpooltest.Hang() }},
	{"500", 4, func(*endpoint, rpcpooltest.Request) rpcpooltest.Reply { return rpcpooltest.Status(500) }},
	{"502, the node had it", 4, func(e *endpoint, r rpcpooltest.Request) rpcpooltest.Reply {
		e.handOn(r)
		return rpcpooltest.Status(502)
	}},
	{"429", 4, func(*endpoint, rpcpooltest.Request) rpcpooltest.Reply { return rpcpooltest.RateLimited(0) }},
	{"garbage", 4, func(*endpoint, rpcpooltest.Request) rpcpooltest.Reply { return rpcpooltest.Garbage() }},
	{"cut body", 4, func(e *endpoint, r rpcpooltest.Request) rpcpooltest.Reply { return e.handOn(r).Cut() }},
	{"reset", 4, func(*endpoint, rpcpooltest.Request) rpcpooltest.Reply { return rpcpooltest.Reset() }},
}

const refused = "refused"

// failureRate is the share of requests at which a faulty endpoint fails.
const failureRate = 0.6

func newEndpoint(world *rpcpooltest.World, name string, behind *realNode, faulty bool, seed uint64) *endpoint {
	e := &endpoint{behind: behind, faulty: faulty, rand: rand.New(rand.NewPCG(seed, seed)), injected: map[string]int{}}
	e.Node = world.Node(name, rpcpooltest.Handle(e.answer))
	return e
}

func (e *endpoint) answer(request rpcpooltest.Request) rpcpooltest.Reply {
	if fault := e.draw(); fault >= 0 {
		return faults[fault].reply(e, request)
	}
	return e.handOn(request)
}

// draw decides whether, and how, a request fails; -1 means that it doesn't.
func (e *endpoint) draw() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.faulty || e.rand.Float64() >= failureRate {
		return -1
	}
	total := 0
	for _, fault := range faults {
		total += fault.weight
	}
	at := e.rand.IntN(total)
	for i, fault := range faults {
		if at -= fault.weight; at < 0 {
			e.injected[fault.name]++
			return i
		}
	}
	return -1
}

var directTransport = &http.Transport{MaxIdleConnsPerHost: 64}

// handOn asks the node, and makes a block where a transaction needs one.
func (e *endpoint) handOn(request rpcpooltest.Request) rpcpooltest.Reply {
	req, err := http.NewRequestWithContext(request.Context(), http.MethodPost, e.behind.url, bytes.NewReader(request.Body))
	if err != nil {
		return rpcpooltest.Status(http.StatusBadGateway)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := directTransport.RoundTrip(req)
	if err != nil {
		return rpcpooltest.Status(http.StatusBadGateway)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return rpcpooltest.Status(http.StatusBadGateway)
	}
	if request.Method == "eth_sendRawTransaction" {
		e.behind.mine()
	}
	return rpcpooltest.Body(string(body)).Header("Content-Type", "application/json").WithStatus(res.StatusCode)
}

// chaos takes the faulty endpoints down and up again, so that connections break and
// are refused, until the test ends.
func chaos(t *testing.T, faulty []*endpoint) {
	stop := make(chan struct{})
	var done sync.WaitGroup
	for i, e := range faulty {
		dice := rand.New(rand.NewPCG(uint64(i), 77))
		done.Go(func() {
			for {
				if !pause(stop, time.Duration(20+dice.IntN(150))*time.Millisecond) {
					return
				}
				e.Kill()
				e.mu.Lock()
				e.injected[refused]++
				e.mu.Unlock()
				pause(stop, time.Duration(20+dice.IntN(50))*time.Millisecond)
				e.Revive()
			}
		})
	}
	t.Cleanup(func() { close(stop); done.Wait() })
}

// pause waits, and tells whether there is anything to wait for.
func pause(stop <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-stop:
		return false
	}
}

// requireAllFaults makes sure that the run has met every fault: else it would show
// little.
func requireAllFaults(t *testing.T, faulty []*endpoint, atLeast int) string {
	t.Helper()
	total := map[string]int{}
	for _, e := range faulty {
		e.mu.Lock()
		for name, n := range e.injected {
			total[name] += n
		}
		e.mu.Unlock()
	}
	text := ""
	for _, fault := range faults {
		require.GreaterOrEqual(t, total[fault.name], atLeast, "the fault %q", fault.name)
	}
	for _, name := range slices.Sorted(maps.Keys(total)) {
		text += ", " + strconv.Itoa(total[name]) + " × " + name
	}
	return text
}
