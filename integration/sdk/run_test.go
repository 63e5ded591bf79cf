package sdk

import (
	"context"
	"crypto/ecdsa"
	"flag"
	"fmt"
	"log/slog"
	"math/big"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var calls = flag.Int("calls", 600, "how many calls are made to each node")

const (
	// attemptTime is short for the sake of hung endpoints, and long for a node that
	// shares the machine with others.
	attemptTime = 2 * time.Second
	// handleCalls is how many calls a handle serves: endpoints that failed cool for a
	// minute, so that a handle meets few failures after its first calls.
	handleCalls = 20
	handles     = 4  // at a time
	sharers     = 4  // goroutines that use a handle at once
	sends       = 10 // one call of so many sends a transaction
)

// An ethclient on the ring, with two of five RPCs failing at random, gives for every
// call the node's own answer, byte for byte, and loses none.
func TestMixedCallsOverFailingRPCs(t *testing.T) {
	for _, kind := range []struct {
		name  string
		start func(*testing.T) *realNode
	}{{"geth", startGeth}, {"anvil", startAnvil}} {
		t.Run(kind.name, func(t *testing.T) {
			runMixedCalls(t, kind.start(t))
		})
	}
}

// mixedRun is one run against one node.
type mixedRun struct {
	node    *realNode
	direct  *ethclient.Client
	history *history
	world   *rpcpooltest.World
	pool    *rpcpool.Pool
	rpcs    []*endpoint

	mu     sync.Mutex // protects what follows
	known  map[string]*answer
	totals rpcpool.RPCStats

	requests atomic.Int64 // that ethclient sent to the ring
}

// answer is what the node itself says to a call; it is asked once.
type answer struct {
	once    sync.Once
	answers []string
	err     error
}

func runMixedCalls(t *testing.T, n *realNode) {
	ctx := patience(t, 3*time.Minute)
	r := &mixedRun{node: n, known: map[string]*answer{}}
	r.direct = dial(t, n.url, &http.Client{Transport: tape{directTransport}})
	senders := make([]*sender, handles*sharers)
	keys := make([]*ecdsa.PrivateKey, len(senders))
	addresses := make([]common.Address, len(senders))
	for i := range keys {
		keys[i] = newKey(t)
		addresses[i] = addressOf(keys[i])
	}
	r.history = makeHistory(t, n, r.direct, addresses)
	for i, key := range keys {
		senders[i] = senderOf(t, key, r.history.chainID)
	}
	r.makeWorld(t)
	began := time.Now()
	r.makeCalls(ctx, t, senders)
	took := time.Since(began)
	for _, s := range senders {
		r.checkSender(ctx, t, s)
	}
	require.NoError(t, r.pool.Close())
	assert.Zero(t, r.world.Network.OpenConns(), "connections stay open after Close")
	injected := requireAllFaults(t, r.rpcs[:2], *calls/1000)
	if t.Failed() {
		return
	}
	s := r.totals
	remarks.add(fmt.Sprintf("%s: %d calls (%d HTTP requests) in %v, no answer lost or changed; of %d attempts %d failed "+
		"(transport %d, protocol %d, rate limit %d)%s",
		n.name, *calls, r.requests.Load(), took.Round(100*time.Millisecond), s.Attempts, s.Attempts-s.Served,
		s.Transport, s.Protocol, s.RateLimited, injected))
}

// makeWorld puts five RPCs in front of the node, of which the first two are faulty,
// and three proxies in front of those, all on loopback.
func (r *mixedRun) makeWorld(t *testing.T) {
	t.Helper()
	r.world = rpcpooltest.NewWorld(rpcpooltest.NewLoopbackNetwork())
	t.Cleanup(func() { r.world.Close() })
	r.world.Network.SetRecording(false)
	r.world.Proxy("socks-a")
	r.world.Proxy("socks-b")
	r.world.ProxyAt("http-c", "http://user:secret@http-c.test:3128")
	for i := range 5 {
		r.rpcs = append(r.rpcs, newEndpoint(r.world, fmt.Sprintf("rpc%d", i), r.node, i < 2, uint64(i)))
	}
	chaos(t, r.rpcs[:2])
	config := r.world.Config()
	config.Timeout = attemptTime
	config.ProxyCheckURL = r.rpcs[2].URL()
	config.Logger = slog.New(slog.DiscardHandler)
	var err error
	r.pool, err = rpcpool.New(config)
	require.NoError(t, err)
	t.Cleanup(func() { r.pool.Close() })
}

// makeCalls makes all calls, in handfuls. Each handful has a handle of its own, which
// several goroutines share, and which lists the RPCs in another order.
func (r *mixedRun) makeCalls(ctx context.Context, t *testing.T, senders []*sender) {
	handfuls := make(chan int)
	var done sync.WaitGroup
	for worker := range handles {
		done.Go(func() {
			for i := range handfuls {
				r.makeHandful(ctx, t, i, senders[worker*sharers:(worker+1)*sharers])
			}
		})
	}
	for i := range (*calls + handleCalls - 1) / handleCalls {
		if t.Failed() {
			break
		}
		handfuls <- i
	}
	close(handfuls)
	done.Wait()
	require.False(t, t.Failed(), "see above")
}

func (r *mixedRun) makeHandful(ctx context.Context, t *testing.T, number int, senders []*sender) {
	ref := fmt.Sprintf("ring-%d", number)
	dice := rand.New(rand.NewPCG(uint64(number), 1))
	listed := make([]any, len(r.rpcs))
	for i, at := range dice.Perm(len(r.rpcs)) {
		listed[i] = r.rpcs[at].Node
	}
	r.world.Pool.Lists(ref, rpcpooltest.PoolList(fmt.Sprintf("eip155:%d", r.history.chainID), listed...))
	chain := r.pool.Chain(ref)
	hc := chain.HTTPClient()
	hc.Transport = tape{counted{hc.Transport, &r.requests}}
	client := dial(t, "http://ring", hc)

	var done sync.WaitGroup
	left := min(handleCalls, *calls-number*handleCalls)
	for i, s := range senders {
		dice := rand.New(rand.NewPCG(uint64(number), uint64(i)+100))
		share := left / (len(senders) - i)
		left -= share
		done.Go(func() {
			for range share {
				if ctx.Err() != nil || t.Failed() {
					return
				}
				if dice.IntN(sends) == 0 {
					r.send(ctx, t, client, s)
				} else {
					r.compare(ctx, t, client, r.history.read(dice))
				}
			}
		})
	}
	done.Wait()
	r.addStats(chain.Stats())
	assert.NoError(t, context.Cause(ctx))
}

// compare makes a call on the ring and checks it against the node's own answer.
func (r *mixedRun) compare(ctx context.Context, t *testing.T, client *ethclient.Client, c call) {
	ringCtx, ring := recorded(ctx)
	ringErr := c.do(ringCtx, client)

	r.mu.Lock()
	own := r.known[c.name]
	if own == nil {
		own = &answer{}
		r.known[c.name] = own
	}
	r.mu.Unlock()
	own.once.Do(func() {
		directCtx, direct := recorded(ctx)
		own.err = c.do(directCtx, r.direct)
		own.answers = direct.answers
	})
	assert.NotEmpty(t, own.answers, c.name)
	assert.Equal(t, own.answers, ring.answers, c.name)
	assert.Equal(t, fmt.Sprint(own.err), fmt.Sprint(ringErr), c.name)
	ringData, ringReverted := ethclient.RevertErrorData(ringErr)
	ownData, ownReverted := ethclient.RevertErrorData(own.err)
	assert.Equal(t, ownReverted, ringReverted, c.name)
	assert.Equal(t, ownData, ringData, c.name)
}

// send sends a transaction on the ring, and waits there for its receipt.
func (r *mixedRun) send(ctx context.Context, t *testing.T, client *ethclient.Client, s *sender) {
	to := common.BigToAddress(new(big.Int).SetUint64(s.nonce + 1<<40))
	tx := s.transact(&to, transferGas, big.NewInt(1), nil)
	if err := client.SendTransaction(ctx, tx); err != nil {
		assert.NoError(t, err, "a send")
		return
	}
	name := "receipt of " + tx.Hash().Hex()
	for ctx.Err() == nil {
		receipt, err := client.TransactionReceipt(ctx, tx.Hash())
		if err == nil && receipt.TxHash == tx.Hash() {
			break
		}
		r.node.mine()
		pause(ctx.Done(), 10*time.Millisecond)
	}
	r.compare(ctx, t, client, call{name, func(ctx context.Context, c *ethclient.Client) error {
		return second(c.TransactionReceipt(ctx, tx.Hash()))
	}})
}

// checkSender makes sure that each of a sender's transactions was mined, once.
func (r *mixedRun) checkSender(ctx context.Context, t *testing.T, s *sender) {
	t.Helper()
	nonce, err := r.direct.NonceAt(ctx, s.address, nil)
	require.NoError(t, err)
	assert.Equal(t, s.nonce, nonce, "transactions sent and mined")
}

func (r *mixedRun) addStats(stats []rpcpool.RPCStats) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range stats {
		r.totals.Attempts += s.Attempts
		r.totals.Served += s.Served
		r.totals.Transport += s.Transport
		r.totals.Protocol += s.Protocol
		r.totals.RateLimited += s.RateLimited
	}
}

// counted counts requests on their way.
type counted struct {
	http.RoundTripper
	requests *atomic.Int64
}

func (c counted) RoundTrip(req *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	return c.RoundTripper.RoundTrip(req)
}

func dial(t *testing.T, url string, hc *http.Client) *ethclient.Client {
	t.Helper()
	client, err := rpc.DialOptions(t.Context(), url, rpc.WithHTTPClient(hc))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return ethclient.NewClient(client)
}

// senderOf gives the sender of a key's account, from nonce 0 on.
func senderOf(t *testing.T, key *ecdsa.PrivateKey, chainID *big.Int) *sender {
	s := &sender{address: addressOf(key)}
	signer := types.LatestSignerForChainID(chainID)
	s.transact = func(to *common.Address, gas uint64, value *big.Int, data []byte) *types.Transaction {
		tx, err := types.SignNewTx(key, signer, &types.DynamicFeeTx{
			ChainID: chainID, Nonce: s.nonce, To: to, Gas: gas, Value: value, Data: data,
			GasTipCap: big.NewInt(params.GWei), GasFeeCap: big.NewInt(100 * params.GWei),
		})
		assert.NoError(t, err)
		s.nonce++
		return tx
	}
	return s
}
