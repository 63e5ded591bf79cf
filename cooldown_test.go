package rpcpool

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }

// Each failure in a row doubles the cooldown, up to 900 s (rule A4.5).
func TestCooldownDoublesUpTo900Seconds(t *testing.T) {
	for n, want := range map[int]time.Duration{
		1: 60 * time.Second, 2: 120 * time.Second, 3: 240 * time.Second, 4: 480 * time.Second,
		5: 900 * time.Second, 6: 900 * time.Second, 1_000_000: 900 * time.Second,
	} {
		require.Equal(t, want, cooldownAfter(n), "after %d failures", n)
	}
}

// The cooldown counts from the latest failure, whichever is recorded last.
func TestLedgerCountsFromTheLatestFailure(t *testing.T) {
	var l ledger
	l.record(&failure{at: at(10)})
	l.record(&failure{at: at(3)})
	n, until := l.standing()
	require.Equal(t, 2, n)
	require.Equal(t, at(130), until)
	require.True(t, l.cooling(at(129)))
	require.False(t, l.cooling(at(130)), "a cooldown is over at its end")
}

// A success wipes out the count and the cooldown, and a failure that is settled
// after it doesn't come back (rule A4.5).
func TestLedgerSuccessWipesOutFailures(t *testing.T) {
	var l ledger
	f := &failure{at: at(0)}
	l.record(f)
	l.reset()
	l.settle(f)
	require.True(t, l.clean())
	require.False(t, l.cooling(at(1)))
}

// Failures through a proxy stop standing when it is found dead, unless a check has
// confirmed them, or they never hung on the proxy (rules A7.3, A7.4).
func TestFailureStandsUntilItsProxyIsFoundDead(t *testing.T) {
	p := &proxy{}
	conn := &failure{at: at(0), proxy: p}
	confirmed := &failure{at: at(1), proxy: p}
	answered := &failure{at: at(2), final: true}
	var l ledger
	for _, f := range []*failure{conn, confirmed, answered} {
		l.record(f)
	}
	n, _ := l.standing()
	require.Equal(t, 3, n)
	confirmed.confirmed = true
	l.settle(confirmed)

	p.deaths.Add(1)
	n, until := l.standing()
	require.Equal(t, 2, n)
	require.Equal(t, at(2+120), until)

	later := &failure{at: at(3), proxy: p, deaths: p.deaths.Load()}
	require.True(t, later.stands(), "a failure of after the death stands until the next one")
}

// Undo is exact: whatever the order of failures, deaths, settlements and successes,
// the ledger says what replaying only the failures that stand would say (rule A7.4).
func TestLedgerAgreesWithAReplayOfWhatStands(t *testing.T) {
	type event struct {
		f     *failure
		reset bool
	}
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		proxies := []*proxy{{}, {}, {}}
		var l ledger
		var history []event
		for step := range 60 {
			switch rng.IntN(6) {
			case 0, 1, 2:
				f := &failure{at: at(step)}
				switch p := proxies[rng.IntN(3)]; rng.IntN(4) {
				case 0:
					f.final = true
				case 1: // one that only its own call can take back
				default:
					f.proxy, f.deaths = p, p.deaths.Load()
				}
				l.record(f)
				history = append(history, event{f: f})
			case 3:
				proxies[rng.IntN(3)].deaths.Add(1)
			case 4:
				if len(history) > 0 {
					e := history[rng.IntN(len(history))]
					switch {
					case e.f == nil || e.f.final || e.f.confirmed || e.f.undone:
					case rng.IntN(3) == 0:
						l.undo(e.f)
					default:
						l.settle(e.f)
						if e.f.stands() {
							e.f.confirmed = true // settled: nothing takes it back any more
						} else {
							e.f.undone = true
						}
					}
				}
			case 5:
				if rng.IntN(4) == 0 {
					l.reset()
					history = append(history, event{reset: true})
				}
			}
			wantN, wantLast := 0, time.Time{}
			for _, e := range history {
				switch {
				case e.reset:
					wantN, wantLast = 0, time.Time{}
				case e.f.stands():
					wantN++
					wantLast = e.f.at
				}
			}
			n, until := l.standing()
			require.Equal(t, wantN, n, "seed %d step %d", seed, step)
			if wantN > 0 {
				require.Equal(t, wantLast.Add(cooldownAfter(wantN)), until, "seed %d step %d", seed, step)
			}
		}
	}
}

// What it costs to ask a ledger doesn't grow with the failures in flight: 10,000 calls
// that fail at once are no reason to be slow.
func BenchmarkLedgerStanding(b *testing.B) {
	for _, n := range []int{1, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p := &proxy{}
			var l ledger
			for i := range n {
				l.record(&failure{at: at(i), proxy: p})
			}
			for b.Loop() {
				l.standing()
			}
		})
	}
}
