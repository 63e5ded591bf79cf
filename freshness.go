package rpcpool

import (
	"strconv"
	"time"
)

// Freshness is the policy of a handle whose reads are never stale, see
// [WithFreshness]. The zero value is the strictest: a latest read is answered by an
// RPC at the high-water mark or not at all.
type Freshness struct {
	// MaxLag is the number of blocks under the high-water mark that a latest read may
	// be answered from. Default: 0. Public RPCs behind load balancers differ by a block
	// or two all the time; 1 or 2 spares waits and errors there.
	MaxLag uint64
	// EjectLag is the number of blocks under the mark from which on an RPC is left
	// alone for a cooldown, rather than passed over until its next block. Default:
	// three block times' worth, which is 3, or MaxLag where that is more.
	EjectLag uint64
	// BlockTime is the time between two blocks, which says how long an RPC's head is
	// known. Default: estimated, from the timestamps of blocks and the growth of heads.
	BlockTime time.Duration
	// SampleEvery is how often every RPC that isn't cooling is asked for its head in the
	// background, from the first call on until [Pool.Close]. Default: 0, only on demand.
	SampleEvery time.Duration
	// ReadYourWrites keeps latest reads, after a transaction was sent, on the RPC that
	// took it until the receipt is seen; where that one fails, only an RPC that is as
	// far as the mark was then may stand in (rule B9).
	ReadYourWrites bool
}

// defaultEjectLag is three block times in blocks (rule B4).
const defaultEjectLag = 3

// WithFreshness makes a handle that never answers a latest read from an RPC that lags
// (rules B2 to B9). It is for EVM chains. A read means the latest state where it names
// the block "latest" or "pending", or none where that means the latest. Such a read is
// sent only to an RPC whose head, as it said within the last block time, is at most
// [Freshness.MaxLag] blocks under the highest that the RPCs of the chain have reached;
// a head that a single operator claims doesn't count until it is plausible or another
// one has reached it. If no RPC is fresh, the call waits up to [Config.MaxWait] and ends
// with a *[StaleError]. A block by its number is passed on as it is, but not to an RPC
// that doesn't have it yet; "safe", "finalized", "earliest" and hashes are left alone.
//
// What goes over [Chain.Run] and REST clients isn't looked into. The handle has a list,
// cursor and cooldowns of its own; the same policy gives the same handle.
func WithFreshness(f Freshness) ChainOption {
	return func(key *chainKey) { key.fresh, key.freshness = true, f }
}

// check says what can't be used about the policy.
func (f *Freshness) check() error {
	switch {
	case f.SampleEvery < 0:
		return &ConfigError{"Freshness.SampleEvery", f.SampleEvery.String() + " is negative; use a positive value, or 0 for none"}
	case f.BlockTime < 0:
		return &ConfigError{"Freshness.BlockTime", f.BlockTime.String() + " is negative; use a positive value, or 0 to have it estimated"}
	case f.EjectLag > 0 && f.EjectLag < f.MaxLag:
		return &ConfigError{"Freshness.EjectLag", strconv.FormatUint(f.EjectLag, 10) + " is less than MaxLag, " +
			strconv.FormatUint(f.MaxLag, 10) + ": RPCs that may answer would be ejected"}
	}
	return nil
}

// ejectLag gives EjectLag or its default.
func (f *Freshness) ejectLag() uint64 {
	if f.EjectLag > 0 {
		return f.EjectLag
	}
	return max(defaultEjectLag, f.MaxLag)
}

// Gate: which RPC may answer a read (rules B3, B6).

// headDemand is what a call asks of an RPC's head.
type headDemand struct {
	on      bool // the handle has the policy, or the call a token
	latest  bool
	carries bool // the answer has the head in it, and is judged by that
	named   bool // it names the block number
	number  uint64

	insists bool // nobody was fresh before: heads are asked for again

	floor     uint64 // a block that the caller knows of already (rule B9)
	onlyFloor bool   // nothing but the floor is asked for: there is no policy
	home      string // URL of the RPC to stay on
}

// admits tells whether an RPC's head, as far as it is known, is enough.
func (v *headView) admits(e *endpoint, d *headDemand, p *Freshness, now time.Time) bool {
	h := &e.heads
	head := h.claim()
	if !d.carries {
		if d.latest && h.doubtful {
			return false
		}
		head -= min(head, h.dipAt(now))
	}
	if d.named && d.number <= v.mark {
		if head < d.number {
			return false
		}
		if !d.latest {
			return true
		}
	}
	if !d.latest && !d.named {
		return true
	}
	return v.lag(head) <= p.MaxLag && head >= d.floor
}

// needsSample tells whether the head must be asked for before it can be said whether
// the RPC may answer. An answer that carries its head needs none.
func (v *headView) needsSample(e *endpoint, d *headDemand, p *Freshness, now time.Time) bool {
	old := !e.heads.recent(now, v.sampleAge())
	switch {
	case d.carries, d.onlyFloor && !d.latest, d.onlyFloor && !e.heads.at.IsZero() && e.heads.seen >= d.floor:
		return false
	case d.insists && !v.admits(e, d, p, now): // what it said a moment ago may not be true any more
		return !e.heads.recent(now, minSampleAge)
	case !old:
		return false
	case d.named && !d.latest && d.number <= v.mark:
		return e.heads.claim()-min(e.heads.claim(), e.heads.dipAt(now)) < d.number
	}
	return d.latest || d.named
}

// Samples of heads.
const (
	minSampleAge = 100 * time.Millisecond // the youngest that is renewed, where it stands in the way
	maxSampleAge = 15 * time.Second       // the oldest that counts, whatever the block time is taken to be
)

// sampleAge is how long an RPC's word about its head counts: a block time.
func (v *headView) sampleAge() time.Duration {
	if v.pace.fixed > 0 {
		return v.pace.fixed
	}
	return min(v.pace.perBlock(), maxSampleAge)
}
