package rpcpool

import "time"

// The time between two blocks is estimated where the user doesn't say it
// ([Freshness.BlockTime]): from the timestamps of blocks where any are seen, else from how
// fast heads grow.
const (
	unknownBlockTime = time.Second // as long as nothing is known: often asked is better than late
	minBlockTime     = 50 * time.Millisecond
	maxBlockTime     = 10 * time.Minute

	// A window must be so long: timestamps are whole seconds, and heads are seen
	// some time after they came.
	minStampSpan    = 10 * time.Second
	minGrowthBlocks = 4
	enoughGrowth    = 10 // blocks, to contradict the timestamps

	maxPaceBlocks = 5000 // then it is begun anew, so that a chain that changes its pace is followed
)

// blockPoint is a block and the time that goes with it.
type blockPoint struct {
	number uint64
	at     time.Time
}

// paceWindow measures the time between blocks over a window.
type paceWindow struct {
	first, last blockPoint
	measured    time.Duration // 0: not yet
	atMost      time.Duration // what it may be, given that the ends aren't exact
}

// add takes another point in; one out of order is left out. The window counts once it
// has so many blocks and is so long.
func (w *paceWindow) add(p blockPoint, minBlocks uint64, minSpan time.Duration) {
	switch {
	case w.first.at.IsZero():
		w.first, w.last = p, p
	case p.number < w.first.number && p.at.Before(w.first.at):
		w.first = p
	case p.number > w.last.number && p.at.After(w.last.at):
		w.last = p
	}
	blocks, span := w.last.number-w.first.number, w.last.at.Sub(w.first.at)
	if blocks < max(minBlocks, 1) || span < minSpan {
		return
	}
	w.measured = min(max(span/time.Duration(blocks), minBlockTime), maxBlockTime)
	w.atMost = span / time.Duration(max(blocks-1, 1))
	if blocks > maxPaceBlocks {
		w.first = w.last
	}
}

func (w *paceWindow) blocks() uint64 { return w.last.number - w.first.number }

// blockPace is the estimate. The timestamps are what RPCs say, so where the heads that were
// seen to grow contradict them by more than twice, neither is trusted: heads are asked for
// as often as the quicker of them says, and believed as the slower allows.
type blockPace struct {
	fixed  time.Duration // the user's own; 0: estimated
	stamps paceWindow    // of the blocks' timestamps
	growth paceWindow    // of the times at which heads were seen
}

// stamped takes in a block with its timestamp.
func (p *blockPace) stamped(number uint64, timestamp time.Time) {
	p.stamps.add(blockPoint{number, timestamp}, 1, minStampSpan)
}

// grew takes in that a block was there at a moment.
func (p *blockPace) grew(number uint64, seen time.Time) {
	p.growth.add(blockPoint{number, seen}, minGrowthBlocks, 0)
}

// known gives the time between two blocks; false while nothing is known of it.
func (p *blockPace) known() (time.Duration, bool) {
	stamped, grown := p.stamps.measured, p.growth.measured
	switch {
	case p.fixed > 0:
		return p.fixed, true
	case stamped > 0 && p.stampsAgree():
		return stamped, true
	case stamped > 0:
		return min(stamped, grown), true
	case grown > 0:
		return grown, true
	}
	return unknownBlockTime, false
}

// stampsAgree tells whether what the timestamps say is borne out by the growth of heads,
// as far as that was seen.
func (p *blockPace) stampsAgree() bool {
	stamped, grown := p.stamps.measured, p.growth.measured
	return p.growth.blocks() < enoughGrowth || stamped <= 2*grown && grown <= 2*stamped
}

// perBlock gives the time between two blocks, a guess while nothing is known.
func (p *blockPace) perBlock() time.Duration {
	each, _ := p.known()
	return each
}

// blocksIn gives how many blocks come in so much time at least; 0 while nothing is known.
func (p *blockPace) blocksIn(d time.Duration) uint64 {
	each, known := p.known()
	if !known || d <= 0 {
		return 0
	}
	if p.fixed == 0 && (p.stamps.measured == 0 || !p.stampsAgree()) {
		each = max(each, p.growth.atMost, p.stamps.measured)
	}
	return uint64(d / each)
}
