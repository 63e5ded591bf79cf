package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/bomzrpc/rpcpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// freshBed gives a chain whose latest reads are never stale, over twins that all have
// block 3, and readers of its head.
func freshBed(t *testing.T, twins []*twin, policy rpcpool.Freshness, mode rpcpool.Mode) (*bed, *headReaders) {
	t.Helper()
	for _, w := range twins {
		w.mine(t, 3)
	}
	b := newBed(t, []string{kind("danted").url()}, map[string][]string{"31337": urlsOf(twins)},
		withTimeout(silence), withMode(mode))
	b.api.setHeight(3)
	chain := b.ChainID(31337, rpcpool.WithFreshness(policy))
	// Two blocks with their timestamps tell the chain's pace.
	for _, block := range []string{"0x0", "latest"} {
		_, err := chain.Call(bounded(t), "eth_getBlockByNumber", block, false)
		require.NoError(t, err)
	}
	return b, startReaders(t, chain)
}

// sampled is a policy by which it shows at once that an RPC has caught up. Without
// samples one that lags is asked again after a block time, which for twins is longer
// than a test can wait.
var sampled = rpcpool.Freshness{SampleEvery: 20 * time.Millisecond}

// Rules B3 to B5, with two nodes of which one is a block ahead and then stops or dies:
// the other is passed over until it has that block too, and no read shows less than one
// that had ended before it began.
func TestReadsNeverGoBackWhenTheLeaderIsLost(t *testing.T) {
	for _, mode := range []rpcpool.Mode{rpcpool.Sticky, rpcpool.RoundRobin} {
		for how, lose := range map[string]func(*twin){
			"stopped": func(w *twin) { w.stop() },
			"killed":  func(w *twin) { w.kill() },
		} {
			for name, policy := range map[string]rpcpool.Freshness{"on demand": {}, "sampled": sampled} {
				t.Run(mode.String()+"/"+how+"/"+name, func(t *testing.T) {
					t.Parallel()
					twins := startTwins(t, 2)
					leader, laggard := twins[0], twins[1]
					b, r := freshBed(t, twins, policy, mode)
					leader.mine(t, 1)
					r.waitFor(4)

					lose(leader)
					outage := r.during(20)
					assert.Zero(t, outage.good, "served by an RPC that lags")
					assert.NotZero(t, outage.stale)

					laggard.mine(t, 1)
					if policy == sampled {
						r.waitForGood()
						laggard.mine(t, 1)
						r.waitFor(5)
					}
					r.end()
					complaints := b.complaints()
					assert.NotEmpty(t, complaints)
					for _, complaint := range complaints {
						assert.NotContains(t, complaint, laggard.url(), "what lags by a block isn't at fault")
					}
				})
			}
		}
	}
}

// Rules B3 to B5, with three nodes of which one stands still while the other two mine:
// the reads follow the two without an error. When these are lost, nothing is read from
// the third until it has caught up.
func TestReadsFollowThoseThatMine(t *testing.T) {
	for _, mode := range []rpcpool.Mode{rpcpool.Sticky, rpcpool.RoundRobin} {
		for _, paused := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/paused %t", mode, paused), func(t *testing.T) {
				t.Parallel()
				twins := startTwins(t, 3)
				laggard, others := twins[0], twins[1:]
				_, r := freshBed(t, twins, sampled, mode)
				if paused {
					laggard.stop()
				}
				for height := range uint64(3) {
					for _, w := range others {
						w.mine(t, 1)
					}
					r.waitFor(height + 4)
					// A head is believed of one RPC that is a block ahead of what two have shown.
					r.wait("not both are asked", func() bool {
						stats := r.chain.Stats()
						return min(stats[1].Head, stats[2].Head) == height+4
					})
				}
				follow := r.during(20)
				assert.Zero(t, follow.stale+follow.lost, "two RPCs have the newest block")

				for _, w := range others {
					w.kill()
				}
				if paused {
					laggard.signal(syscall.SIGCONT)
				}
				outage := r.during(20)
				assert.Zero(t, outage.good, "served by an RPC that lags")
				if paused {
					return // it cools down for its silence, for longer than a test can wait
				}
				assert.NotZero(t, outage.stale)
				laggard.mine(t, 3)
				r.waitForGood()
			})
		}
	}
}

// headReaders read the head of a chain over and over, in both ways in which an answer
// carries it, and fail the test where a block is older than one that was read before.
type headReaders struct {
	t     *testing.T
	chain *rpcpool.Chain
	end   func()
	seen  atomic.Uint64 // the newest block that was read

	mu    sync.Mutex // protects what follows
	phase int
	tally tally // of the phase
	last  error // of the phase
}

// tally counts how reads ended that began and ended in one phase of a test.
type tally struct{ good, stale, lost int }

const headReadersAtOnce = 4

func startReaders(t *testing.T, chain *rpcpool.Chain) *headReaders {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &headReaders{t: t, chain: chain}
	var reading sync.WaitGroup
	for i := range headReadersAtOnce {
		reading.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				r.read(ctx, n%2 == 0)
				<-time.After(2 * time.Millisecond) // other tests need the machine as well
			}
		})
	}
	r.end = sync.OnceFunc(func() {
		cancel()
		reading.Wait()
	})
	t.Cleanup(r.end)
	return r
}

func (r *headReaders) read(ctx context.Context, byNumber bool) {
	r.mu.Lock()
	phase := r.phase
	r.mu.Unlock()
	before := r.seen.Load()
	head, err := r.readHead(ctx, byNumber)
	if err == nil {
		assert.GreaterOrEqual(r.t, head, before, "the head went back")
		for seen := r.seen.Load(); head > seen && !r.seen.CompareAndSwap(seen, head); seen = r.seen.Load() {
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.phase == phase {
		r.tally.count(r.t, err)
		r.last = err
	}
}

func (r *headReaders) readHead(ctx context.Context, byNumber bool) (uint64, error) {
	if byNumber {
		head, err := rpcpool.CallAs[hexQuantity](ctx, r.chain, "eth_blockNumber")
		return uint64(head), err
	}
	block, err := rpcpool.CallAs[struct{ Number hexQuantity }](ctx, r.chain, "eth_getBlockByNumber", "latest", false)
	return uint64(block.Number), err
}

// hexQuantity is a number as JSON-RPC has it.
type hexQuantity uint64

func (q *hexQuantity) UnmarshalText(text []byte) error {
	_, err := fmt.Sscanf(string(text), "0x%x", (*uint64)(q))
	return err
}

func (c *tally) count(t *testing.T, err error) {
	var stale *rpcpool.StaleError
	var none *rpcpool.NoHealthyRPCError
	var interrupted *rpcpool.InterruptedError
	switch {
	case err == nil:
		c.good++
	case errors.As(err, &stale):
		c.stale++
	case errors.As(err, &none):
		c.lost++
	case !errors.As(err, &interrupted): // that is the end of the readers
		assert.NoError(t, err)
	}
}

// newPhase begins to count anew: what is under way doesn't count any more.
func (r *headReaders) newPhase() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.phase++
	r.tally = tally{}
}

func (r *headReaders) soFar() tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tally
}

// during tells how so many reads ended that began now, or later.
func (r *headReaders) during(reads int) tally {
	r.t.Helper()
	r.newPhase()
	r.wait("reads don't end", func() bool {
		c := r.soFar()
		return c.good+c.stale+c.lost >= reads
	})
	return r.soFar()
}

// waitForGood waits for a read that began now, or later, and succeeded.
func (r *headReaders) waitForGood() {
	r.t.Helper()
	r.newPhase()
	r.wait("nothing can be read", func() bool { return r.soFar().good > 0 })
}

// waitFor waits until a block was read.
func (r *headReaders) waitFor(height uint64) {
	r.t.Helper()
	r.wait(fmt.Sprintf("block %d isn't read", height), func() bool { return r.seen.Load() >= height })
}

func (r *headReaders) wait(about string, condition func() bool) {
	r.t.Helper()
	if assert.Eventually(r.t, condition, 30*time.Second, 5*time.Millisecond, about) {
		return
	}
	r.end()
	r.t.Fatalf("newest block read: %d; so far: %+v; the last read: %v", r.seen.Load(), r.tally, r.last)
}

// Rule D1: of two real nodes of different chains in one list, the one of the other chain
// is asked for its chain's id, once, and for nothing else; it is reported.
func TestNodeOfAnotherChainIsLeftOut(t *testing.T) {
	for _, c := range []struct{ right, wrong node }{{nodes[0], nodes[2]}, {nodes[2], nodes[1]}} {
		t.Run(c.right.name+" and "+c.wrong.name, func(t *testing.T) {
			t.Parallel()
			need(t, "danted", c.right.name, c.wrong.name)
			wrong := listenAt(t, c.wrong)
			b := newBed(t, []string{kind("danted").url()}, map[string][]string{c.right.ref(): {wrong.url, c.right.url()}},
				withMode(rpcpool.RoundRobin), func(cfg *rpcpool.Config) { cfg.VerifyChainID = true })
			chain := b.ChainID(c.right.chainID)
			for range 5 {
				id, err := rpcpool.CallAs[hexQuantity](bounded(t), chain, "eth_chainId")
				require.NoError(t, err)
				assert.Equal(t, c.right.chainID, uint64(id))
				_, err = chain.Call(bounded(t), "eth_getBalance", fundedAccount, "latest")
				require.NoError(t, err)
				_, err = chain.Snapshot(bounded(t), "latest")
				require.NoError(t, err)
				answer := post(t, chain.HTTPClient(), `[{"jsonrpc":"2.0","id":1,"method":"eth_chainId"},{"jsonrpc":"2.0","id":2,"method":"eth_blockNumber"}]`)
				assert.Contains(t, answer, fmt.Sprintf(`"0x%x"`, c.right.chainID))
			}
			assert.Equal(t, []rpcpool.Verdict{rpcpool.VerdictWrongChain}, verdicts(b.log.attempts(), wrong.host))
			assert.Equal(t, []string{"eth_chainId"}, wrong.methods())
			assert.Equal(t, []string{wrong.url + " rpc_error"}, b.complaints())
		})
	}
}

// Rule D1: where no other is listed, the call fails, and is never sent to the wrong chain.
func TestOnlyNodeIsOfAnotherChain(t *testing.T) {
	t.Parallel()
	need(t, "danted", "anvil")
	wrong := listenAt(t, nodes[0])
	b := newBed(t, []string{kind("danted").url()}, map[string][]string{"1": {wrong.url}},
		func(cfg *rpcpool.Config) { cfg.VerifyChainID = true })
	raw, _ := signedTx(t, nodes[0].ref(), "first")
	for range 2 {
		_, err := b.ChainID(1).Call(bounded(t), "eth_sendRawTransaction", raw)
		var none *rpcpool.NoHealthyRPCError
		require.ErrorAs(t, err, &none)
	}
	assert.Equal(t, []string{"eth_chainId"}, wrong.methods())
}

// listener is a relay before a node that writes down what the node is asked for, so
// that this needn't be taken from the library's own log.
type listener struct {
	host, url string

	mu    sync.Mutex // protects asked
	asked []string
}

func listenAt(t *testing.T, n node) *listener {
	t.Helper()
	l := &listener{host: "relay-to-" + n.name}
	relay := n.relay(t)
	site, err := startSite(l.host, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		l.note(body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		relay.ServeHTTP(w, r)
	}))
	require.NoError(t, err)
	l.url = site.url("http")
	return l
}

// note keeps the methods of a request, or of a batch of them.
func (l *listener) note(body []byte) {
	var batch []struct{ Method string }
	if json.Unmarshal(body, &batch) != nil && json.Unmarshal([]byte("["+string(body)+"]"), &batch) != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, request := range batch {
		l.asked = append(l.asked, request.Method)
	}
}

func (l *listener) methods() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked
}

// post sends a body as an SDK does, and gives the answer's.
func post(t *testing.T, client *http.Client, body string) string {
	t.Helper()
	res, err := client.Post("http://chain/", "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, http.StatusOK, res.StatusCode)
	answer, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return string(answer)
}

// Quorum reads of two real nodes that have the first blocks in common and then went
// their own ways: what both say alike is the answer, of the rest who said what is told.
func TestQuorumOfTwoNodes(t *testing.T) {
	t.Parallel()
	twins := startTwins(t, 2)
	for _, w := range twins {
		w.mine(t, 2)
	}
	twins[1].time += twinBlockTime // from here on their blocks differ
	for _, w := range twins {
		w.mine(t, 1)
	}
	b := newBed(t, []string{kind("danted").url()}, map[string][]string{"31337": urlsOf(twins)})
	quorum := b.ChainID(31337).Quorum(2)
	for _, c := range []struct {
		method string
		params []any
	}{
		{"eth_chainId", nil},
		{"eth_blockNumber", nil},
		{"eth_getBlockByNumber", []any{"0x0", false}},
		{"eth_getBlockByNumber", []any{"0x2", true}},
		{"eth_getBalance", []any{fundedAccount, "0x3"}},
	} {
		raw, err := quorum.Call(bounded(t), c.method, c.params...)
		require.NoError(t, err, "%s %v", c.method, c.params)
		assert.JSONEq(t, string(twins[0].direct(t, c.method, c.params...)), string(raw))
	}

	_, err := quorum.Call(bounded(t), "eth_getBlockByNumber", "0x3", false)
	var split *rpcpool.QuorumError
	require.ErrorAs(t, err, &split)
	require.Len(t, split.Answers, 2)
	said := map[string]string{}
	for _, answer := range split.Answers {
		require.NoError(t, answer.Err)
		said[answer.Operator] = string(answer.Result)
	}
	for _, w := range twins {
		assert.JSONEq(t, string(w.direct(t, "eth_getBlockByNumber", "0x3", false)), said[loopback(w.port)])
	}

	twins[1].kill()
	_, err = quorum.Call(bounded(t), "eth_chainId")
	require.ErrorAs(t, err, &split, "one operator is no quorum of two")
}

// Two URLs of one domain are one operator, whose word alone is no quorum (rule D4).
func TestQuorumNeedsOperators(t *testing.T) {
	t.Parallel()
	need(t, "danted", "anvil", "hardhat")
	b := newBed(t, []string{kind("danted").url()}, map[string][]string{"31337": {nodes[0].url(), nodes[1].url()}})
	_, err := b.ChainID(31337).Quorum(2).Call(bounded(t), "eth_chainId")
	var split *rpcpool.QuorumError
	require.ErrorAs(t, err, &split)
	operators := map[string]int{}
	for _, answer := range split.Answers {
		operators[answer.Operator]++
	}
	assert.Equal(t, map[string]int{"rpc.test": 1, "": 1}, operators)
}
