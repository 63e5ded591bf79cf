package rpcpool

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// listOf is a Directory of so many RPCs of all abilities.
type listOf int

func (n listOf) RPCs(context.Context, string) (*List, error) {
	list := &List{Key: "eip155:1"}
	for i := range int(n) {
		list.RPCs = append(list.RPCs, RPC{URL: fmt.Sprintf("http://r%d.test/key", i), Caps: capsOf(i%3 > 0, uint64(i%2)*10_000, ArchiveFull)})
	}
	return list, nil
}

func (listOf) Report(context.Context, Report) error { return nil }

// stillChain is a handle of so many RPCs, whose list is there.
func stillChain(t testing.TB, rpcs int, change ...func(*Config)) *chainState {
	t.Helper()
	c := stillPool(t, rpcs, change...).Chain("1").s
	require.NoError(t, c.ensureList(t.Context(), time.Hour))
	return c
}

// stillPool is a pool that lists so many RPCs for every chain.
func stillPool(t testing.TB, rpcs int, change ...func(*Config)) *Pool {
	t.Helper()
	cfg := Config{
		Proxies: []string{"socks5://p1.test:1080"}, Directory: listOf(rpcs), CacheDir: t.TempDir(),
		RefreshInterval: 24 * time.Hour, Logger: slog.New(slog.DiscardHandler),
	}
	for _, each := range change {
		each(&cfg)
	}
	pool, err := New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = pool.Close() })
	return pool
}

// Rule A4.2a: the candidates of a walk are those of its start, in the order of the ring,
// whatever is found out about them while it lasts.
func TestCandidatesAreThoseOfTheStart(t *testing.T) {
	for seed := range 100 {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(seed), 1))
			c := stillChain(t, 1+random.IntN(8), func(cfg *Config) { cfg.Shared = silentView{} })
			k := c.newCall(t.Context(), newEncodedRequest(c.pool, "debug_x", []byte(noParams)))
			k.want.need.sendTx = random.IntN(3) == 0
			k.want.read = blockRead{kind: "state", block: 100, numbered: random.IntN(2) == 0}
			for range 12 {
				for range random.IntN(2 * len(c.ring.endpoints)) {
					happen(k, random)
				}
				k.want.exclude = map[string]bool{c.ring.endpoints[random.IntN(len(c.ring.endpoints))].url: random.IntN(2) == 0}
				want := candidates(c.ring, c.cursor, k.want, time.Now())
				slices.SortStableFunc(want, func(a, b *endpoint) int { return warning(a) - warning(b) })
				require.True(t, k.lineUp())
				require.Equal(t, len(want) == 1, k.line.lone)
				for i, e := range want {
					require.Equal(t, e.label, k.line.at(c, i).label)
					for range random.IntN(3) {
						happen(k, random)
					}
				}
				require.Nil(t, k.line.at(c, len(want)))
				if len(want) > 0 {
					require.Len(t, k.line.after(c, 0), len(want)-1)
				}
				require.LessOrEqual(t, len(c.marked), len(c.ring.endpoints))
				checkLastResort(t, k)
				time.Sleep(time.Duration(random.IntN(400)) * time.Second)
			}
		})
	}
}

// checkLastResort looks at whom a call would turn to as a last resort: RPCs that cool and
// are left alone for nothing else, the one that is back first at first, and none twice.
func checkLastResort(t *testing.T, k *call) {
	now := time.Now()
	tried := k.chain.ring.endpoints[0]
	var l lineup
	l.lineUpTheRest(k.chain, &k.want, map[string]bool{tried.url: true}, now)
	var last time.Time
	for _, e := range l.list {
		require.NotSame(t, tried, e)
		require.False(t, e.expelled || e.backOff.lasts(now), e.label)
		require.False(t, e.backAt(now).Before(last), "%s is back before the one before it", e.label)
		last = e.backAt(now)
	}
	for _, e := range k.chain.ring.endpoints[1:] {
		require.Equal(t, e.health.cooling(now) && !e.barred(now) && k.want.suits(e, now), slices.Contains(l.list, e), e.label)
	}
}

// happen lets something be found out about an RPC.
func happen(k *call, random *rand.Rand) {
	c := k.chain
	e := c.ring.endpoints[random.IntN(len(c.ring.endpoints))]
	switch random.IntN(10) {
	case 0, 1:
		k.fail(e, &failure{at: time.Now(), final: true}, outcome{})
	case 2:
		k.rest(e, outcome{})
	case 3:
		k.expel(e, outcome{})
	case 4:
		c.markUnsupported(e, []string{"debug_x", "debug_y"}[random.IntN(2)])
	case 5:
		out := k.want.exclude[e.url]
		_ = k.passOver(e, k.req, outcome{judgement: judgement{verdict: VerdictNoState, pruned: true}})
		k.want.exclude[e.url] = out // which only the RPC that was asked is
	case 6:
		c.served(e, "debug_y", 0)
	case 7, 8:
		kind := []FactKind{FactCooldown, FactRest, FactUnsupported}[random.IntN(3)]
		fact := Fact{Kind: kind, Chain: c.ring.key, ID: e.peers.id, For: time.Duration(1+random.IntN(900)) * time.Second}
		if kind == FactUnsupported {
			fact.Method = []string{"debug_x", "debug_y"}[random.IntN(2)]
		}
		c.pool.sharing.take([]Fact{fact})
	case 9:
		c.served(e, "debug_x", 0)
	}
}

// warning tells, in the words of what was taken over, whether an RPC comes after others.
func warning(e *endpoint) int {
	now := time.Now()
	if now.Before(e.peers.until) || now.Before(e.peers.methods["debug_x"]) {
		return 1
	}
	return 0
}

// silentView is a view in which nobody says anything.
type silentView struct{}

func (silentView) Publish(context.Context, []Fact) error { return nil }

func (silentView) Follow(ctx context.Context, _ func([]Fact)) error {
	<-ctx.Done()
	return ctx.Err()
}
