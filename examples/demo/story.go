package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// attemptTimeout is short, for a human waits here for what hangs. The library's
// default is 15 s.
const attemptTimeout = 1200 * time.Millisecond

// chain is the network that the story plays on: Base.
const chain = "8453"

// story is the world that the acts happen in, and what became of them.
type story struct {
	ctx   context.Context
	tell  *teller
	world *rpcpooltest.World
	pause time.Duration // before an act, for a human to read the last one

	alpha, bravo, delta, echo *rpcpooltest.Node // RPCs of Base, best first
	paris, tokyo              *rpcpooltest.Proxy

	bot  *bot // the main character
	bots []*bot

	// err is what first turned out otherwise than told; what follows isn't played.
	err error
}

// bot is a program that uses the library.
type bot struct {
	name    string
	pool    *rpcpool.Pool
	base    *rpcpool.Chain
	journal *journal
}

func newStory(ctx context.Context, t *teller, network *rpcpooltest.Network) (*story, error) {
	w := rpcpooltest.NewWorld(network)
	s := &story{ctx: ctx, tell: t, world: w}
	s.paris = w.ProxyAt("paris", "socks5://user-paris:word-paris@paris.test:1080")
	s.tokyo = w.ProxyAt("tokyo", "http://user-tokyo:word-tokyo@tokyo.test:3128")
	node := func(name string) *rpcpooltest.Node {
		return w.NodeAt(name, "https://"+name+".test/v2/key-of-"+name, healthy()...)
	}
	s.alpha, s.bravo, s.delta, s.echo = node("alpha"), node("bravo"), node("delta"), node("echo")
	w.List(chain, s.alpha, s.bravo, s.delta, s.echo)
	// What the library checks a suspicious proxy by: the best RPCs of Ethereum.
	w.List("eip155:1", node("one"), node("two"))

	var err error
	if s.bot, err = s.newBot("the bot", rpcpool.Sticky); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// healthy is how a good RPC of Base answers.
func healthy() []rpcpooltest.Reply {
	return []rpcpooltest.Reply{
		rpcpooltest.Result("0x2105").Method("eth_chainId"),
		rpcpooltest.Result("0x16e3600").Method("eth_blockNumber"),
		rpcpooltest.Result("0x5f5e100").Method("eth_gasPrice"),
		rpcpooltest.Result(map[string]any{"gas": 21000, "failed": false}).Method("debug_traceTransaction"),
		rpcpooltest.Logs().Method("eth_getLogs"),
	}
}

// misbehave puts answers before the good ones.
func misbehave(node *rpcpooltest.Node, replies ...rpcpooltest.Reply) {
	node.Script(append(replies, healthy()...)...)
}

func (s *story) newBot(name string, mode rpcpool.Mode) (*bot, error) {
	j := newJournal(s.tell)
	config := s.world.Config()
	config.Mode = mode
	config.Timeout = attemptTimeout
	config.Logger = slog.New(j)
	pool, err := rpcpool.New(config)
	if err != nil {
		return nil, err
	}
	b := &bot{name: name, pool: pool, base: pool.Chain(chain), journal: j}
	s.bots = append(s.bots, b)
	return b, nil
}

// close ends all bots, and the world that they live in.
func (s *story) close() {
	for _, b := range s.bots {
		_ = b.pool.Close()
	}
	_ = s.world.Close()
}

// play tells act after act, until one doesn't turn out as told.
func (s *story) play(acts []act) error {
	began := time.Now()
	s.prologue()
	for i, a := range acts {
		select {
		case <-time.After(s.pause):
		case <-s.ctx.Done():
		}
		s.tell.act(i+1, a.title, a.about)
		a.play(s)
		if err := s.ctx.Err(); err != nil {
			return fmt.Errorf("act %d, %q, was broken off: %w", i+1, a.title, err)
		}
		if s.err != nil {
			s.tell.printf("\n   %s\n", s.tell.paint(red, "Not as told: "+s.err.Error()))
			return fmt.Errorf("act %d, %q, didn't turn out as told: %w", i+1, a.title, s.err)
		}
		if a.why != "" {
			s.tell.why(a.why)
		}
	}
	s.tell.printf("\nAll %d acts turned out as told, in %.1f s.\n", len(acts), time.Since(began).Seconds())
	return nil
}

func (s *story) prologue() {
	t := s.tell
	t.printf("%s\n\n", t.paint(bold, "rpcpool: a bot calls public RPCs through its own proxies"))
	t.paragraph(plain, 3, "Everything below happens inside this program: the pool API, the proxies "+
		"and the RPCs speak SOCKS5, HTTP CONNECT, TLS and JSON-RPC over 127.0.0.1. "+
		"Nothing leaves this machine. Secrets are shown as ***, as the library shows them.")
	t.printf("\n")
	t.printf("   pool API   http://pool.test\n")
	t.printf("   proxies    socks5://***@paris.test:1080, http://***@tokyo.test:3128\n")
	t.printf("   RPCs       alpha, bravo, delta, echo: best first, as the pool lists them\n")
	t.printf("   timeout    %.1f s an attempt, so that you needn't wait long (default 15 s)\n", attemptTimeout.Seconds())
}

// fail notes that something didn't turn out as told.
func (s *story) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
}

// answer is how a call ended.
type answer struct {
	s        *story
	result   json.RawMessage
	err      error
	attempts []string
}

// call has a bot ask for something, and tells of it.
func (s *story) call(b *bot, method string, params ...any) *answer {
	if s.err != nil {
		return &answer{s: s}
	}
	s.tell.request(b.name, method)
	a := &answer{s: s}
	a.result, a.err = b.base.Call(s.ctx, method, params...)
	a.attempts = b.journal.take()
	if a.err == nil {
		s.tell.result(string(a.result))
	}
	return a
}

// through says by which attempts, in short, the call must have come to a result.
func (a *answer) through(want ...string) {
	if a.err != nil {
		a.s.fail("the call failed: %w", a.err)
		return
	}
	a.took(want)
}

// took says which attempts must have been made.
func (a *answer) took(want []string) {
	if a.s.err == nil && !slices.Equal(a.attempts, want) {
		a.s.fail("the attempts were [%s], not [%s]", strings.Join(a.attempts, "; "), strings.Join(want, "; "))
	}
}
