package rpcpool_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
)

// The numbers that FAILOVER.md lists are those of the code, and the settings that it names
// for them are there.
func TestDocsNumbers(t *testing.T) {
	t.Parallel()
	rows := map[string]string{}
	table := section(t, readPage(t, "docs/FAILOVER.md"), "Numbers")
	for _, row := range regexp.MustCompile(`(?m)^\| (.+?) \| (.+?) \| (.+?) \|$`).FindAllStringSubmatch(table, -1) {
		rows[row[1]] = row[2]
		for _, name := range regexp.MustCompile("`(Config|Hedge)\\.(\\w+)`").FindAllStringSubmatch(row[3], -1) {
			require.Contains(t, exportedFields(t)[name[1]], name[2], row[1])
		}
	}
	s := func(d time.Duration) string { return fmt.Sprint(d.Seconds(), " s") }
	ms := func(d time.Duration) string { return fmt.Sprint(d.Milliseconds(), " ms") }
	mib := func(n int) string { return fmt.Sprint(n>>20, " MiB") }
	for what, want := range map[string]string{
		"an attempt; a check of a proxy": s(rpcpool.DefaultTimeout),
		"rounds":                         fmt.Sprint(rpcpool.DefaultMaxRounds),
		"age of the list, and of the targets of checks": s(rpcpool.DefaultRefreshInterval),
		"an answer":                               mib(rpcpool.DefaultMaxResponseBytes),
		"requests under way to an RPC":            fmt.Sprint(rpcpool.DefaultMaxConns),
		"a request to the pool":                   s(rpcpool.PoolTimeout),
		"idle connections":                        s(rpcpool.IdleConnTimeout),
		"the list between rounds is fetched anew": "when it is " + s(rpcpool.MinRefetch) + " old",
		"cooldown of RPCs and proxies":            s(rpcpool.FirstCooldown) + ", doubling, " + s(rpcpool.MaxCooldown) + " at most",
		"a lag that ejects; that is allowed":      fmt.Sprint(rpcpool.DefaultLag, " blocks; 0"),
		"a JSON-RPC batch":                        fmt.Sprint(rpcpool.MaxBatch, " elements, ", mib(rpcpool.MaxBatchBytes)),
		"of one call, under way at once: batches; elements by themselves": fmt.Sprint(rpcpool.BatchesAtOnce, "; ", rpcpool.SinglesAtOnce),
		"elements wait for others to travel with":                         ms(rpcpool.BatchPatience),
		"hedged reads: the first answer is waited for":                    fmt.Sprintf("as long as 95 %% of answers took, %s at least; %s until there were %d", ms(rpcpool.MinHedgeDelay), s(rpcpool.UnknownDelay), rpcpool.EnoughLatencies),
		"hedged reads: second requests":                                   fmt.Sprintf("%v of the calls, saved up for ten of them", rpcpool.DefaultExtra),
		"what a fleet says holds ([FLEET.md](FLEET.md))":                  fmt.Sprintf("%s at most; of a dead proxy %s, of a head %s", s(rpcpool.MaxCooldown), s(rpcpool.MaxProxyWarning), s(rpcpool.HeadHolds)),
		"facts about RPCs of lists that are still to come":                fmt.Sprint(rpcpool.MaxKnownFacts),
		"the view takes facts within":                                     s(rpcpool.PublishTimeout),
		"a lost view is tried again":                                      fmt.Sprintf("after %s, doubling, %s at most", s(rpcpool.FirstRejoin), s(rpcpool.LastRejoin)),
		"each text of a fact":                                             fmt.Sprint(rpcpool.MaxFactText, " bytes"),
		"facts for the fleet travel together; in one `Publish`; wait while the view is lost": fmt.Sprintf(
			"%s; %d; %d", ms(rpcpool.PublishEvery), rpcpool.MaxPublished, rpcpool.MaxQueuedFacts),
	} {
		require.Equal(t, want, rows[what], what)
	}
	require.Equal(t, 10, rpcpool.KeptHedges)
}
