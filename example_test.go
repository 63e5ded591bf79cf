package rpcpool_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// exampleWorld is what the examples run in: two RPCs of a chain at block 1000, of which the
// better one is down, a proxy and a pool service, all in memory.
func exampleWorld(change ...func(*rpcpool.Config)) (*rpcpool.Pool, func()) {
	world := rpcpooltest.NewWorld(rpcpooltest.NewMemoryNetwork())
	world.Proxy("p1")
	evm := rpcpooltest.NewEVM(8453, 1000)
	world.List("8453", world.Node("down", rpcpooltest.Status(503)), world.Node("good", evm.Serve()))
	cfg := world.Config()
	cfg.Logger = slog.New(slog.DiscardHandler)
	for _, each := range change {
		each(&cfg)
	}
	pool, err := rpcpool.New(cfg)
	if err != nil {
		panic(err)
	}
	return pool, func() {
		_ = pool.Close()
		_ = world.Close()
	}
}

// A call goes to the next RPC where one fails.
func Example() {
	pool, done := exampleWorld()
	defer done()
	head, err := rpcpool.CallAs[string](context.Background(), pool.Chain("8453"), "eth_blockNumber")
	fmt.Println(head, err)
	// Output: 0x3e8 <nil>
}

// What can't be used is an error that says how to put it right.
func ExampleNew() {
	_, err := rpcpool.New(rpcpool.Config{Proxies: []string{"user:password@proxy.example.com:1080"}})
	fmt.Println(err)
	// Output: rpcpool: Proxies[0]: the proxy's URL has no scheme; wanted form: SCHEME://HOST:PORT or SCHEME://LOGIN@HOST:PORT with one of the schemes socks5, socks5h, socks4, socks4a, http, https
}

// A reference and options name a handle; the same ones name the same.
func ExamplePool_Chain() {
	pool, done := exampleWorld()
	defer done()
	fmt.Println(pool.Chain("8453").Ref(), pool.Chain("8453", rpcpool.WithArchive(rpcpool.ArchiveRecent)).Policy())
	// Output: 8453 archive_recent
}

func ExamplePool_ChainID() {
	pool, done := exampleWorld()
	defer done()
	fmt.Println(pool.ChainID(8453).Ref())
	// Output: 8453
}

// An exporter goes through all handles that are in use.
func ExamplePool_Chains() {
	pool, done := exampleWorld()
	defer done()
	_, _ = pool.Chain("8453").Call(context.Background(), "eth_chainId")
	for _, chain := range pool.Chains() {
		for _, rpc := range chain.Stats() {
			fmt.Println(chain.Ref(), rpc.RPC, rpc.State)
		}
	}
	// Output:
	// 8453 http://down.test/*** cooling
	// 8453 http://good.test/*** ready
}

func ExamplePool_ProxyStats() {
	pool, done := exampleWorld()
	defer done()
	for _, proxy := range pool.ProxyStats() {
		fmt.Println(proxy.Proxy, proxy.State)
	}
	// Output: socks5://***@p1.test:1080 ready
}

func ExampleChain_Call() {
	pool, done := exampleWorld()
	defer done()
	raw, err := pool.Chain("8453").Call(context.Background(), "eth_getBalance", "0x4200000000000000000000000000000000000006", "latest")
	fmt.Println(string(raw), err)
	// Output: "0x3e8" <nil>
}

// CallContext has the signature of go-ethereum's rpc.Client.
func ExampleChain_CallContext() {
	pool, done := exampleWorld()
	defer done()
	var block struct{ Number string }
	err := pool.Chain("8453").CallContext(context.Background(), &block, "eth_getBlockByNumber", "latest", false)
	fmt.Println(block.Number, err)
	// Output: 0x3e8 <nil>
}

func ExampleCallAs() {
	pool, done := exampleWorld()
	defer done()
	id, err := rpcpool.CallAs[string](context.Background(), pool.Chain("8453"), "eth_chainId")
	fmt.Println(id, err)
	// Output: 0x2105 <nil>
}

// Each element has a failover and an error of its own.
func ExampleChain_BatchCallContext() {
	pool, done := exampleWorld()
	defer done()
	var head, id string
	elems := []rpcpool.BatchElem{{Method: "eth_blockNumber", Result: &head}, {Method: "eth_chainId", Result: &id}}
	err := pool.Chain("8453").BatchCallContext(context.Background(), elems)
	fmt.Println(head, id, err, elems[0].Error)
	// Output: 0x3e8 0x2105 <nil> <nil>
}

// otherElem stands for go-ethereum's rpc.BatchElem, which has the same fields.
type otherElem struct {
	Method string
	Args   []any
	Result any
	Error  error
}

// BatchCall takes the elements of other libraries, such as go-ethereum's.
func ExampleBatchCall() {
	pool, done := exampleWorld()
	defer done()
	var head string
	err := rpcpool.BatchCall(context.Background(), pool.Chain("8453"), []otherElem{{Method: "eth_blockNumber", Result: &head}})
	fmt.Println(head, err)
	// Output: 0x3e8 <nil>
}

// status is a function for Run: it uses the given client only, and gives an HTTPError for
// what isn't 2xx.
func status(ctx context.Context, url string, client *http.Client) (string, error) {
	body := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return "", &rpcpool.HTTPError{StatusCode: res.StatusCode, Status: res.Status}
	}
	answer, err := io.ReadAll(res.Body)
	return string(bytes.TrimSpace(answer)), err
}

func ExampleChain_Run() {
	pool, done := exampleWorld()
	defer done()
	var answer string
	err := pool.Chain("8453").Run(context.Background(), func(ctx context.Context, url string, client *http.Client) (err error) {
		answer, err = status(ctx, url, client)
		return err
	})
	fmt.Println(answer, err)
	// Output: {"jsonrpc":"2.0","id":1,"result":"0x2105"} <nil>
}

func ExampleRunAs() {
	pool, done := exampleWorld()
	defer done()
	answer, err := rpcpool.RunAs(context.Background(), pool.Chain("8453"), status)
	fmt.Println(answer, err)
	// Output: {"jsonrpc":"2.0","id":1,"result":"0x2105"} <nil>
}

// Any SDK that takes an *http.Client works over the ring; the URL is a label.
func ExampleChain_HTTPClient() {
	pool, done := exampleWorld()
	defer done()
	client := pool.Chain("8453").HTTPClient()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://base",
		strings.NewReader(`{"jsonrpc":"2.0","id":"mine","method":"eth_blockNumber"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := client.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	fmt.Println(string(answer), err)
	// Output: {"jsonrpc":"2.0","id":"mine","result":"0x3e8"} <nil>
}

// For REST interfaces, say how the RPC's path and the request's are joined.
func ExampleREST() {
	fmt.Println(rpcpool.JoinPath("/key", "/cosmos/base/tendermint/v1beta1/blocks/latest"))
	fmt.Println(rpcpool.JoinAptos("/key/v1", "/v1/accounts/0x1"))
	// Output:
	// /key/cosmos/base/tendermint/v1beta1/blocks/latest
	// /key/v1/accounts/0x1
}

func ExampleChain_GetLogsChunked() {
	pool, done := exampleWorld()
	defer done()
	logs, err := pool.Chain("8453").GetLogsChunked(context.Background(),
		rpcpool.LogFilter{FromBlock: 901, ToBlock: 1000}, rpcpool.ChunkSize(10), rpcpool.Concurrency(4))
	fmt.Println(len(logs), err)
	// Output: 100 <nil>
}

// Pieces come in the order of the blocks, so that progress can be stored.
func ExampleChain_LogChunks() {
	pool, done := exampleWorld()
	defer done()
	filter := rpcpool.LogFilter{FromBlock: 1, ToBlock: 1000}
	for chunk, err := range pool.Chain("8453").LogChunks(context.Background(), filter, rpcpool.ChunkSize(500)) {
		fmt.Println(chunk.From, chunk.To, len(chunk.Logs), err)
	}
	// Output:
	// 1 500 500 <nil>
	// 501 1000 500 <nil>
}

// A send ends in one of three ways: taken, refused, or nobody knows.
func ExampleChain_SendRawTransaction() {
	pool, done := exampleWorld()
	defer done()
	signed := []byte{0x02, 0xc2, 0x01, 0x07} // as a wallet gives it
	hash, err := pool.Chain("8453").SendRawTransaction(context.Background(), signed)
	var unknown *rpcpool.TxOutcomeUnknownError
	switch {
	case err == nil:
		fmt.Println("taken:", len(hash))
	case errors.As(err, &unknown):
		fmt.Println("look for", unknown.Hash, "before you sign another one")
	default:
		fmt.Println("not sent:", err)
	}
	// Output: taken: 66
}

func ExampleChain_Broadcast() {
	pool, done := exampleWorld()
	defer done()
	hash, err := pool.Chain("8453").Broadcast(context.Background(), []byte{0x02, 0xc2, 0x01, 0x08}, 2)
	fmt.Println(len(hash), err)
	// Output: 66 <nil>
}

func ExampleChain_WaitReceipt() {
	pool, done := exampleWorld()
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := pool.Chain("8453").WaitReceipt(ctx, "0x"+strings.Repeat("11", 32), rpcpool.Confirmations(2))
	var unknown *rpcpool.TxOutcomeUnknownError
	fmt.Println(errors.As(err, &unknown), errors.Is(err, context.DeadlineExceeded))
	// Output: true true
}

// A handle with a policy answers latest reads only from RPCs that are up to date.
func ExampleWithFreshness() {
	pool, done := exampleWorld()
	defer done()
	fresh := pool.Chain("8453", rpcpool.WithFreshness(rpcpool.Freshness{MaxLag: 1}))
	balance, err := rpcpool.CallAs[string](context.Background(), fresh, "eth_getBalance", "0x4200000000000000000000000000000000000006", "latest")
	fmt.Println(balance, err, fresh.HighWater())
	// Output: 0x3e8 <nil> 1000
}

func ExampleWithHedge() {
	pool, done := exampleWorld()
	defer done()
	hedged := pool.Chain("8453", rpcpool.WithHedge(rpcpool.Hedge{Delay: 200 * time.Millisecond, MaxExtra: 0.1}))
	head, err := rpcpool.CallAs[string](context.Background(), hedged, "eth_blockNumber")
	fmt.Println(head, err)
	// Output: 0x3e8 <nil>
}

func ExampleWithArchive() {
	pool, done := exampleWorld()
	defer done()
	old, err := rpcpool.CallAs[string](context.Background(), pool.Chain("8453", rpcpool.WithArchive(rpcpool.ArchiveFull)),
		"eth_getBalance", "0x4200000000000000000000000000000000000006", "0x1")
	fmt.Println(old, err)
	// Output: 0x1 <nil>
}

// All reads of a snapshot are of one block, whichever RPC answers.
func ExampleChain_Snapshot() {
	pool, done := exampleWorld()
	defer done()
	ctx := context.Background()
	snap, err := pool.Chain("8453").Snapshot(ctx, "latest")
	if err != nil {
		fmt.Println(err)
		return
	}
	raw, err := snap.Call(ctx, "eth_getBalance", "0x4200000000000000000000000000000000000006")
	fmt.Println(snap.Number(), string(raw), err)
	// Output: 1000 "0x3e8" <nil>
}

func ExampleSnapshot_Call() {
	pool, done := exampleWorld()
	defer done()
	ctx := context.Background()
	snap, err := pool.Chain("8453").Snapshot(ctx, "0x3e0")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = snap.Call(ctx, "eth_getBalance", "0x4200000000000000000000000000000000000006", "0x3e1") // of another block
	fmt.Println(err)
	// Output: rpcpool: invalid request "eth_getBalance": in a snapshot: it names the block "0x3e1", and the snapshot is of block 992; leave the block out, or ask the chain itself
}

// Two operators must say the same.
func ExampleQuorumReads_Call() {
	pool, done := exampleWorld()
	defer done()
	_, err := pool.Chain("8453").Quorum(2).Call(context.Background(), "eth_chainId")
	var split *rpcpool.QuorumError
	fmt.Println(errors.As(err, &split)) // only one of the two answers
	// Output: true
}

// What many calls may use together.
func ExampleWithBudget() {
	pool, done := exampleWorld()
	defer done()
	ctx := rpcpool.WithBudget(context.Background(), rpcpool.Budget{Attempts: 1})
	_, err := pool.Chain("8453").Call(ctx, "eth_blockNumber") // the first RPC is down, and there is nothing left for the second
	var over *rpcpool.BudgetError
	fmt.Println(errors.As(err, &over), over.Ran)
	// Output: true attempts
}

// A receipt's block is a floor for what is read after it, on any handle.
func ExampleWithReadToken() {
	pool, done := exampleWorld()
	defer done()
	token, err := rpcpool.ReceiptToken([]byte(`{"blockNumber":"0x3e9","transactionHash":"0x` + strings.Repeat("11", 32) + `"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := rpcpool.WithReadToken(context.Background(), token)
	_, err = pool.Chain("8453").Call(ctx, "eth_getBalance", "0x4200000000000000000000000000000000000006", "latest")
	var stale *rpcpool.StaleError
	fmt.Println(errors.As(err, &stale), token.Block) // no RPC is at block 1001
	// Output: true 1001
}

func ExampleWriteStats() {
	pool, done := exampleWorld()
	defer done()
	chain := pool.Chain("8453")
	if err := rpcpool.WriteStats(os.Stdout, chain.Stats()); err != nil { // before the first call there is nothing to tell
		fmt.Println(err)
	}
	// Output: RPC  HEAD  LAG  SERVED  CONN  PROTO  SEMANT  429  MEAN  P95  EJECT  STATE
}

func ExampleWriteProxyStats() {
	pool, done := exampleWorld()
	defer done()
	var table strings.Builder
	err := rpcpool.WriteProxyStats(&table, pool.ProxyStats())
	fmt.Println(strings.Fields(table.String())[0], err)
	// Output: PROXY <nil>
}

func ExampleReadStaticDirectory() {
	lists, err := rpcpool.ReadStaticDirectory("examples/rpcpool.json")
	fmt.Println(lists.Chains(), err)
	// Output: [eip155:8453 eip155:1] <nil>
}

// A wording that isn't known yet.
func ExampleRule() {
	pool, done := exampleWorld(func(cfg *rpcpool.Config) {
		cfg.Rules = []rpcpool.Rule{{
			Name: "acme's credits", Pattern: regexp.MustCompile(`credits? (exhausted|used up)`), Verdict: rpcpool.VerdictRPCFail,
		}}
	})
	defer done()
	_, err := pool.Chain("8453").Call(context.Background(), "eth_blockNumber")
	fmt.Println(err)
	// Output: <nil>
}

// counter is a hook that counts attempts by verdict. Hooks are called by many goroutines; this
// one is used by one call only.
type counter map[rpcpool.Verdict]int

func (counter) AttemptStarted(ctx context.Context, _ rpcpool.AttemptStart) context.Context {
	return ctx
}
func (c counter) AttemptEnded(_ context.Context, end rpcpool.AttemptEnd) { c[end.Verdict]++ }

func ExampleHook() {
	verdicts := counter{}
	pool, done := exampleWorld(func(cfg *rpcpool.Config) { cfg.Hooks = []rpcpool.Hook{verdicts} })
	defer done()
	_, _ = pool.Chain("8453").Call(context.Background(), "eth_blockNumber")
	fmt.Println(verdicts)
	// Output: map[ok:1 rpc_fail:1]
}

// An error lists every attempt, with masked URLs.
func ExampleNoHealthyRPCError() {
	pool, done := exampleWorld()
	defer done()
	_, err := pool.Chain("8453").Call(context.Background(), "my_method")
	if unhealthy, ok := errors.AsType[*rpcpool.NoHealthyRPCError](err); ok {
		for _, attempt := range unhealthy.Attempts {
			fmt.Println(attempt.RPC, attempt.Verdict)
		}
	}
	// Output:
	// http://down.test/*** rpc_fail
	// http://good.test/*** unsupported
}
