// Command rules shows how a user's own rules judge an answer that the library
// doesn't know yet. It needs no network: the RPCs and the proxy are in this program.
//
//	go run ./examples/rules
//
// An RPC called acme answers everything with a refusal in words of its own. Nothing
// in them tells that acme is at fault, so the call ends with them; with a rule that
// knows the words the call goes on to the next RPC.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"regexp"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// rules are what this bot knows about its RPCs.
var rules = []rpcpool.Rule{
	{
		Name:    "acme's lease is over",
		Pattern: regexp.MustCompile(`lease .*(is over|has ended)`),
		Verdict: rpcpool.VerdictRPCFail, // acme cools down, the next RPC is asked
	},
	{
		Name:    "acme sells traces apart",
		Pattern: regexp.MustCompile(`premium shelf`),
		Methods: []string{"debug_traceTransaction", "debug_traceCall"},
		Verdict: rpcpool.VerdictUnsupported, // remembered for this method, nothing cools
	},
	{
		Name: "code 7101 is a full log page",
		Match: func(answer rpcpool.ErrorAnswer) bool {
			return answer.Code == 7101
		},
		Chains:  []string{"eip155:8453"},
		Verdict: rpcpool.VerdictRange, // for log queries: fewer blocks help
	},
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run asks for the newest block without the rules and with them.
func run(ctx context.Context, out io.Writer) error {
	for _, known := range []struct {
		what  string
		rules []rpcpool.Rule
	}{
		{"without rules", nil},
		{"with rules", rules},
	} {
		head, err := ask(ctx, known.rules)
		if err != nil {
			head = err.Error()
		}
		if _, err := fmt.Fprintf(out, "%s: %s\n", known.what, head); err != nil {
			return err
		}
	}
	return nil
}

// ask makes the call in a world of one proxy and two RPCs.
func ask(ctx context.Context, rules []rpcpool.Rule) (string, error) {
	world := rpcpooltest.NewWorld(rpcpooltest.NewMemoryNetwork())
	defer world.Close()
	world.Proxy("p1")
	world.List("8453",
		world.Node("acme", rpcpooltest.Error(-32000, "Account 77: your lease of this box is over")),
		world.Node("other", rpcpooltest.Result("0x2a")),
	)
	config := world.Config()
	config.Rules = rules
	config.Logger = slog.New(slog.DiscardHandler)
	pool, err := rpcpool.New(config)
	if err != nil {
		return "", err
	}
	defer pool.Close()
	return rpcpool.CallAs[string](ctx, pool.Chain("8453"), "eth_blockNumber")
}
