package rpcpool

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A rate limit isn't a failure: the RPC is fine and wants to be asked less (rule B8). It
// is left alone for as long as it says, or else a little longer each time; its failures
// in a row stay what they are. All callers share the pause.

const (
	firstBackOff  = time.Second
	maxOwnBackOff = 60 * time.Second // where the RPC doesn't say how long
)

// backOff is the pause of an RPC. Guarded by chainState.mu.
type backOff struct {
	until time.Time
	inRow int // rate limits since the RPC last answered
}

func (b *backOff) lasts(now time.Time) bool { return now.Before(b.until) }

// limited notes a rate limit. asked is how long the RPC asks to be left alone, 0 where
// it doesn't say.
func (b *backOff) limited(now time.Time, asked time.Duration) {
	if !b.lasts(now) { // of many that were under way one counts
		b.inRow++
	}
	pause := min(asked, maxCooldown)
	if asked <= 0 {
		pause = firstBackOff
		for i := 1; i < b.inRow && pause < maxOwnBackOff; i++ {
			pause *= 2
		}
		pause = min(pause, maxOwnBackOff)
	}
	b.until = later(b.until, now.Add(pause))
}

// retryAfter reads a Retry-After header: seconds, or a date. 0 where there is none that
// says anything.
func retryAfter(header http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil {
		return time.Duration(min(seconds, uint64(maxCooldown/time.Second))) * time.Second
	}
	date, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return max(date.Sub(now), 0)
}

// restsInstead tells whether an outcome is a rate limit that the RPC is left alone for
// rather than cooled. Without freshness and waiting all is as rule A5 has it.
func (k *call) restsInstead(out *outcome) bool {
	if k.chain.policy == nil && k.pool.maxWait == 0 {
		return false
	}
	return out.report == reportHTTP429 || out.status == http.StatusServiceUnavailable && out.retryAfter > 0
}

// rest leaves an RPC alone that wants to be asked less.
func (k *call) rest(e *endpoint, out outcome) step {
	return k.setAside(e, out, RPCRested, func(now time.Time) {
		e.backOff.limited(now, out.retryAfter)
		k.chain.shareRest(e, now)
	})
}

// expel leaves out an RPC that is on another chain, until the list changes (rule D1).
func (k *call) expel(e *endpoint, out outcome) step {
	return k.setAside(e, out, RPCExpelled, func(time.Time) { e.expelled = true })
}

// setAside reports an RPC that isn't asked for now and has no cooldown. In Sticky the
// cursor goes on, as after any failure: it would come back each time the pause ends.
func (k *call) setAside(e *endpoint, out outcome, change CooldownChange, aside func(now time.Time)) step {
	f := &failure{at: time.Now(), final: true, echo: out.batch.echoesRPC()}
	k.failures = append(k.failures, callFailure{endpoint: e, failure: f, report: out.report, detail: out.detail})
	if f.echo {
		return next
	}
	c := k.chain
	c.mu.Lock()
	aside(f.at)
	c.markUnfit(e)
	e.conns.turnAway()
	c.stepOff(e)
	event := CooldownEvent{Change: change, Verdict: out.verdict, Class: classOf(&out)}
	if change == RPCRested {
		event.Until, event.FailuresInRow = e.backOff.until, e.backOff.inRow
	}
	c.mu.Unlock()
	k.tellCooldown(e, event)
	return next
}
