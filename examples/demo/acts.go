package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// act is a part of the story: what is about to happen, what does, and why.
type act struct {
	title, about string
	play         func(*story)
	why          string
}

var acts = []act{
	{
		title: "The ring",
		about: "The RPCs stand in a ring, and a cursor says where the next request begins. " +
			"One bot works in Sticky mode (the default), another one in RoundRobin.",
		play: theRing,
		why: "Sticky stays with an RPC that answers, so that reads which belong together see one node; " +
			"RoundRobin goes on after each answer and spreads the load.",
	},
	{
		title: "An RPC fails",
		about: "alpha answers HTTP 500.",
		play:  anRPCFails,
		why: "a 500 is the RPC's own fault: it cools for 60 s (longer if it fails again) and the cursor goes on. " +
			"The bot sees nothing but the result.",
	},
	{
		title: "A rate limit",
		about: "bravo answers 429 to whatever comes from paris.",
		play:  aRateLimit,
		why: "limits mostly are on an address, so the same RPC is asked once more through another proxy. " +
			"That helped: bravo doesn't cool, and tokyo is the proxy in use from now on.",
	},
	{
		title: "A revert",
		about: "A contract refuses what the bot asks of it.",
		play:  aRevert,
		why:   "every RPC would say the same, so the answer is handed back at once as it is, code and data included.",
	},
	{
		title: "A method that an RPC doesn't have",
		about: "bravo doesn't serve debug_traceTransaction.",
		play:  anUnsupportedMethod,
		why: "that isn't a failure, so bravo doesn't cool and goes on with everything else. " +
			"For this method it is passed over for 600 s, without being asked again.",
	},
	{
		title: "A proxy dies, and it looks as if the RPCs had",
		about: "tokyo still takes connections, but nothing comes back any more. Three RPCs in a row will seem to hang, " +
			"then the proxy itself is checked. This is the part with real waiting, about 5 s.",
		play: aProxyDies,
		why: "three different RPCs that can't be reached through one proxy raise the question whose fault it is. " +
			"Two good RPCs of Ethereum didn't answer through tokyo either, so it is tokyo's: the failures are undone, " +
			"no RPC cools, none is reported, and the request begins anew at bravo, through paris.",
	},
	{
		title: "Logs of too many blocks",
		about: "The bot wants the logs of 2,000 blocks, in pieces of 1,000. No RPC gives more than 500 at once.",
		play:  tooManyLogs,
		why: "three refusals are enough to know that it is the range. They name 500 blocks, so that is the size from here on. " +
			"Nobody cools for it.",
	},
	{
		title: "The pool API is down",
		about: "The service that lists the RPCs goes away, just when a second bot starts on this machine.",
		play:  thePoolIsDown,
		why: "the running bot has its list in memory. The new one takes the list that the first one left in the cache folder, " +
			"and says so. It has no cooldowns yet, so it begins at alpha, which is well again.",
	},
	{
		title: "What was reported in the end",
		about: "The pool API is back. The bot stops, and what it had to say about RPCs has arrived:",
		play:  theEnd,
		why:   "",
	},
}

func theRing(s *story) {
	s.call(s.bot, "eth_blockNumber").through("alpha paris ok")
	s.call(s.bot, "eth_chainId").through("alpha paris ok")

	other, err := s.newBot("the RoundRobin bot", rpcpool.RoundRobin)
	if err != nil {
		s.fail("%w", err)
		return
	}
	s.call(other, "eth_blockNumber").through("alpha paris ok")
	s.call(other, "eth_blockNumber").through("bravo paris ok")
	s.call(other, "eth_blockNumber").through("delta paris ok")
}

func anRPCFails(s *story) {
	misbehave(s.alpha, rpcpooltest.Status(500).Times(1))
	s.call(s.bot, "eth_blockNumber").through("alpha paris rpc_fail", "bravo paris ok")
	s.call(s.bot, "eth_gasPrice").through("bravo paris ok")
}

func aRateLimit(s *story) {
	misbehave(s.bravo, rpcpooltest.RateLimited(0).Via("paris").Times(1))
	s.call(s.bot, "eth_gasPrice").through("bravo paris ip_blocked", "bravo tokyo ok")
	s.call(s.bot, "eth_blockNumber").through("bravo tokyo ok")
}

func aRevert(s *story) {
	misbehave(s.bravo, rpcpooltest.ErrorData(3, "execution reverted: ERC20: transfer amount exceeds balance",
		"0x08c379a0").Method("eth_call"))
	a := s.call(s.bot, "eth_call", map[string]any{"to": "0x4200000000000000000000000000000000000006"}, "latest")
	a.took([]string{"bravo tokyo caller"})
	var revert *rpcpool.RPCError
	if !errors.As(a.err, &revert) || revert.Code != 3 || string(revert.Data) != `"0x08c379a0"` {
		s.fail("the bot didn't get the node's own error but %v", a.err)
		return
	}
	s.tell.result(fmt.Sprintf("*rpcpool.RPCError: code %d, data %s, message %q", revert.Code, revert.Data, revert.Message))
}

func anUnsupportedMethod(s *story) {
	const trace = "debug_traceTransaction"
	misbehave(s.bravo, rpcpooltest.Error(-32601, "the method debug_traceTransaction does not exist/is not available").Method(trace))
	hash := fmt.Sprintf("0x%064x", 1)
	s.call(s.bot, trace, hash).through("bravo tokyo unsupported", "delta tokyo ok")
	s.call(s.bot, trace, hash).through("delta tokyo ok")
	s.call(s.bot, "eth_blockNumber").through("bravo tokyo ok")
}

func aProxyDies(s *story) {
	s.tokyo.Kill() // connections that are open would go on to work
	s.tokyo.Script(rpcpooltest.ProxyBlackHole())
	s.tokyo.Revive()
	s.call(s.bot, "eth_blockNumber").through("bravo tokyo conn_fail", "delta tokyo conn_fail", "echo tokyo conn_fail", "bravo paris ok")
}

func tooManyLogs(s *story) {
	const from, to = 24_000_000, 24_001_999
	refusal := rpcpooltest.Error(-32602, "exceed maximum block range: 500")
	for _, node := range []*rpcpooltest.Node{s.bravo, s.delta, s.echo} {
		misbehave(node, rpcpooltest.LogsUpTo(500, refusal).Method("eth_getLogs"))
	}
	s.tell.request(s.bot.name, fmt.Sprintf("GetLogsChunked, blocks %d to %d", from, to))
	logs, err := s.bot.base.GetLogsChunked(s.ctx, rpcpool.LogFilter{FromBlock: from, ToBlock: to})
	if err != nil {
		s.fail("the call failed: %w", err)
		return
	}
	if len(logs) == 0 || blockOf(logs[0]) != fmt.Sprintf("0x%x", from) || blockOf(logs[len(logs)-1]) != fmt.Sprintf("0x%x", to) {
		s.fail("the %d logs don't cover the range", len(logs))
		return
	}
	attempts := s.bot.journal.take()
	if attempts[0] != "bravo paris range" || attempts[len(attempts)-1] != "bravo paris ok" {
		s.fail("the attempts were %v", attempts)
	}
	s.tell.result(fmt.Sprintf("%d logs in the order of their blocks, none left out", len(logs)))
}

// blockOf gives the block of a log.
func blockOf(log json.RawMessage) string {
	var fields struct {
		BlockNumber string `json:"blockNumber"`
	}
	_ = json.Unmarshal(log, &fields)
	return fields.BlockNumber
}

func thePoolIsDown(s *story) {
	s.world.Pool.Kill()
	s.call(s.bot, "eth_blockNumber").through("bravo paris ok")

	second, err := s.newBot("the second bot", rpcpool.Sticky)
	if err != nil {
		s.fail("%w", err)
		return
	}
	s.call(second, "eth_blockNumber").through("alpha paris ok")
	s.world.Pool.Revive()
}

func theEnd(s *story) {
	_ = s.bot.pool.Close() // gives queued reports up to 2 s
	s.tell.printf("\n")
	var about []string
	for _, r := range s.world.Pool.Reports() {
		about = append(about, nickname(r.URL)+" "+r.Error)
		// The library's own form of a report masks the URL.
		s.tell.paragraph(yellow, 5, fmt.Sprint(rpcpool.Report{Chain: r.Chain, URL: r.URL, Error: r.Error, Detail: r.Detail}))
	}
	if !slices.Equal(about, []string{"alpha rpc_error"}) {
		s.fail("the reports were %v", about)
		return
	}
	s.tell.printf("\n")
	s.tell.paragraph(cyan, 3, "Nothing about bravo, which answered in the end, "+
		"nor about the three that a dead proxy made look dead.")
	tellOfDials(s)

	s.tell.printf("\n")
	s.tell.paragraph(plain, 3, "The first bot's figures, counted from its debug log:")
	s.tell.printf("\n")
	for i, line := range s.bot.journal.table() {
		colour := plain
		if i == 0 {
			colour = bold
		}
		s.tell.printf("   %s\n", s.tell.paint(colour, line))
	}
	if cooling := s.bot.journal.cooling(); !slices.Equal(cooling, []string{"alpha"}) {
		s.fail("%v are cooling", cooling)
	}
}

// tellOfDials shows that nothing went past the proxies.
func tellOfDials(s *story) {
	dialled := map[string]bool{}
	for _, addr := range s.world.Network.Dials() {
		dialled[addr] = true
	}
	addrs := slices.Sorted(maps.Keys(dialled))
	s.tell.printf("\n")
	s.tell.paragraph(plain, 3, "All that the bots connected to: "+strings.Join(addrs, ", ")+
		". They reached the RPCs through the proxies only, which looked up the names, too.")
	if !slices.Equal(addrs, []string{"paris.test:1080", "pool.test:80", "tokyo.test:3128"}) {
		s.fail("the bots connected to %v", addrs)
	}
	if breaches := s.world.Network.Breaches(); len(breaches) > 0 {
		s.fail("rules were broken: %v", breaches)
	}
}
