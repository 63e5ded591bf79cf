package main

// pageHead is the page up to what differs from run to run.
const pageHead = `# Performance

What rpcpool costs beside what one would write by hand and beside other libraries. The program in ` + "`bench/`" + ` measured
all of it in one run and wrote this page; to repeat it:

` + "```sh" + `
make bench                    # everything, into this page: a quarter of an hour and a quiet machine
go -C bench run . -quick      # two or three minutes, for a look
` + "```" + `

## How it is measured

- The endpoints and the proxies run in a process of their own, so allocations and CPU time are the client's. All traffic
  stays on 127.0.0.1. A proxy answers in the place of the nodes behind it, as cheaply as can be.
- rpcpool sends nothing without a proxy. So all contenders go through the same one; SOCKS5 with plain http is the way with
  the least on it.
- The contenders take turns in a random order, a new one for each pass. A ratio is formed within a pass and then the median
  is taken: what else the machine did met both alike. In parentheses: the 25th and the 75th percentile of the passes.
- Allocations and bytes are counted by the runtime over whole passes, so they are exact; times under another load than the
  benchmark's are worth little.
- **bare-tuned** is an ` + "`http.Client`" + ` on a transport for HTTP/1.1 that keeps as many connections as were in use, with
  encoding/json: what the ratios are to. **bare-lean** is the least that net/http's transport can be asked with: a copied
  request, an envelope written and read by hand, no copy of the result, no check that the body is JSON; it bounds what a
  library on net/http can reach. **bare-default** is net/http's default transport.
- **bare-loop** tries the endpoints in order at each call; **bare-sticky** passes over one that failed for 30 s.
- The libraries stand on the tuned transport. Those without a list of endpoints get one in the way that costs them least,
  and wait for nothing between attempts. go-ethereum's client has no failover. failsafe-go leaves the answer of a failed
  attempt open; here a listener drains it, so that its connection can be used again.

`

// goalsHead says what the goals are.
const goalsHead = `## Goals

What the library is to reach, set before it was measured, and what this very run gave. Where a goal has several values they
stand in the order in which it names them; a value counts as it is shown.

`

// quotedHead says what the quoted rows are.
const quotedHead = `Two peers can't be had as Go modules in a run of this program. These are figures of an earlier measurement, on a machine of
the same kind (2 cores of an AMD EPYC, Go 1.26.8), with what was measured by hand in that run beside them: direct means
without any proxy. multinode polled every 100 ms, far more often than usual, which is its best case; rcpx counted
deadlines as failures.

`

// quoted are those figures.
var quoted = []table{
	{
		title: "Steady state, time × bare-tuned of that run",
		head:  []string{"client", "direct, 1 caller", "direct, 64", "CONNECT+TLS, 1", "64", "SOCKS5+TLS, 1", "64", "allocs", "bytes"},
		rows: [][]string{
			{"rcpx", "1.05", "1.07", "1.10", "1.25", "1.11", "1.07", "85", "7,230"},
			{"rcpx under go-ethereum", "1.17", "1.22", "1.15", "1.28", "1.02", "1.40", "98", "8,550"},
			{"multinode over go-ethereum", "1.11", "1.03", "1.06", "1.09", "0.99", "1.04", "78", "6,190"},
		},
	},
	{
		title: "Failover, direct: first call / later calls in µs; requests and dials of a later call at four faults",
		head:  []string{"client", "refused, 1", "refused, 4", "500, 1", "500, 4", "429, 4", "requests, dials"},
		rows: [][]string{
			{"bare-loop", "374 / 248", "586 / 660", "641 / 269", "1,361 / 510", "1,325 / 571", "5, 0"},
			{"bare-sticky", "552 / 125", "653 / 153", "697 / 154", "1,416 / 132", "1,513 / 125", "1, 0"},
			{"rcpx (cools down after 3)", "450 / 135", "927 / 161", "575 / 135", "1,343 / 104", "1,332 / 131", "1.04, 0.04"},
			{"multinode", "92,600 / 132", "92,500 / 142", "96,200 / 136", "92,600 / 171", "92,600 / 135", "1, 0"},
		},
	},
	{
		title: "A blackhole, direct, 1 s for an attempt: ms of each call",
		head:  []string{"client", "call 1", "call 2", "call 3", "call 4"},
		rows: [][]string{
			{"rcpx", "1,000, an error", "1,001, an error", "1,001, an error", "0.2"},
			{"multinode", "1,006", "0.2", "0.2", "0.2"},
		},
	},
	{
		title: "A large answer, direct, 31.5 MB",
		head:  []string{"client", "known length, MB/s", "memory ×", "in chunks, MB/s", "memory ×"},
		rows: [][]string{
			{"bare-tuned", "149", "2.00", "92", "3.34"},
			{"rcpx", "140–158", "2.00", "91–109", "3.3"},
			{"multinode, rcpx under go-ethereum", "52–57", "4.0", "54", "4.0"},
		},
	},
	{
		title: "A crowd, direct, 128 connections to one endpoint",
		head:  []string{"client", "ok %", "wall, ms", "p99, ms", "requests/call", "dials", "memory, MB", "goroutines"},
		rows: [][]string{
			{"bare-loop", "100", "1,250", "445", "1.33", "513", "217", "10,769"},
			{"rcpx", "94–100", "1,748", "899", "1.20", "6,882", "254", "10,480"},
			{"multinode", "100", "2,099", "1,072", "1.78", "384", "240", "10,536"},
		},
	},
}
