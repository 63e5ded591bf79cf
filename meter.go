package rpcpool

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// FailureClass is one of the four kinds of failure that call for different cures
// (rule B1), or none.
type FailureClass int

// The classes.
const (
	// NoFailure: nothing that the RPC is to blame for. The zero value.
	NoFailure FailureClass = iota
	// TransportFailure: there was no HTTP answer: connection, TLS, time.
	TransportFailure
	// ProtocolFailure: the RPC answered, and the answer was an error or no JSON-RPC.
	ProtocolFailure
	// SemanticFailure: a good answer that is stale, or from the wrong state or chain.
	SemanticFailure
	// RateLimitFailure: the RPC wants to be asked less: HTTP 429.
	RateLimitFailure
	failureClasses
)

// String gives the class's name.
func (c FailureClass) String() string {
	switch c {
	case NoFailure:
		return "none"
	case TransportFailure:
		return "transport"
	case ProtocolFailure:
		return "protocol"
	case SemanticFailure:
		return "semantic"
	case RateLimitFailure:
		return "rate_limit"
	}
	return "unknown"
}

// failureClassOf says to which class an outcome counts; none for a success, an error of
// the caller's, and a failure of the proxy, which says nothing of the RPC.
func failureClassOf(out *outcome) (class FailureClass, counts bool) {
	switch out.verdict {
	case VerdictConnFail:
		return TransportFailure, true
	case VerdictIPBlocked:
		if out.report == reportHTTP429 {
			return RateLimitFailure, true
		}
		return ProtocolFailure, true
	case VerdictRPCFail, VerdictUnsupported, VerdictRange:
		return ProtocolFailure, true
	case VerdictNoState, VerdictStale, VerdictWrongChain:
		return SemanticFailure, true
	}
	return NoFailure, false
}

// meter counts what went over one RPC or proxy. It needs no lock.
type meter struct {
	inFlight  atomic.Int64
	attempts  atomic.Uint64
	served    atomic.Uint64
	refused   atomic.Uint64 // failures of the proxy itself
	failures  [failureClasses]atomic.Uint64
	ejections atomic.Uint64
	forks     atomic.Uint64 // blocks for which another RPC said another hash
	bytes     atomic.Uint64
	latency   histogram // of attempts that were answered
}

// begin counts an attempt in.
func (m *meter) begin() { m.inFlight.Add(1) }

// end counts it out.
func (m *meter) end(out *outcome, took time.Duration) {
	m.inFlight.Add(-1)
	m.attempts.Add(1)
	switch out.verdict {
	case VerdictOK, VerdictCaller:
		m.served.Add(1)
		m.latency.add(took)
		m.bytes.Add(uint64(len(out.result)))
	case VerdictProxyFail:
		m.refused.Add(1)
	default:
		if class, counts := failureClassOf(out); counts {
			m.failures[class].Add(1)
		}
	}
}

// histogram counts durations in buckets of which each is a quarter of a power of
// two wide, from a microsecond to an hour: a quantile is right within 13 %.
type histogram struct {
	count   atomic.Uint64
	sum     atomic.Int64
	buckets [histogramBuckets]atomic.Uint64
}

const (
	histogramBuckets = 128
	bucketsPerDouble = 4
)

func (h *histogram) add(d time.Duration) {
	h.count.Add(1)
	h.sum.Add(int64(d))
	h.buckets[bucketOf(d)].Add(1)
}

// bucketOf gives the bucket of a duration: the position of the highest bit of its
// microseconds, and the two bits below it.
func bucketOf(d time.Duration) int {
	us := uint64(max(d/time.Microsecond, 1))
	high := bits.Len64(us) - 1
	below := 0
	if high >= 2 {
		below = int(us>>(high-2)) & 3
	} else if high == 1 {
		below = int(us&1) * 2
	}
	return min(high*bucketsPerDouble+below, histogramBuckets-1)
}

// upperEnd is the end of a bucket.
func upperEnd(bucket int) time.Duration {
	high, below := bucket/bucketsPerDouble, bucket%bucketsPerDouble
	return time.Duration(float64(uint64(1)<<high)*(1+float64(below+1)/bucketsPerDouble)) * time.Microsecond
}

func (h *histogram) mean() time.Duration {
	n := h.count.Load()
	if n == 0 {
		return 0
	}
	return time.Duration(h.sum.Load() / int64(n))
}

// quantiles gives the durations under which the shares p50, p95 and p99 of all are, each as
// the end of its bucket; 0 where nothing was counted. All three are of one look at the
// buckets: whoever scrapes asks for them of every RPC, of which most never were asked.
func (h *histogram) quantiles() (p50, p95, p99 time.Duration) {
	if h.count.Load() == 0 {
		return 0, 0, 0
	}
	var counts [histogramBuckets]uint64
	total := uint64(0)
	for i := range h.buckets {
		counts[i] = h.buckets[i].Load()
		total += counts[i]
	}
	return quantile(&counts, total, 0.50), quantile(&counts, total, 0.95), quantile(&counts, total, 0.99)
}

func quantile(counts *[histogramBuckets]uint64, total uint64, share float64) time.Duration {
	if total == 0 { // what was counted first isn't in its bucket yet
		return 0
	}
	want, seen := uint64(share*float64(total)), uint64(0)
	for i, n := range counts {
		seen += n
		if seen > want || seen == total {
			return upperEnd(i)
		}
	}
	return upperEnd(histogramBuckets - 1)
}
