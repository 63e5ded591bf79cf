package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
)

// server is a Redis with the stream of facts alone, in a bubble. What the view has no business
// with panics.
type server struct {
	goredis.UniversalClient
	entries     []goredis.XMessage // from which each read takes a page; ids aren't looked at
	flood       bool               // they come again and again
	broken      error              // what reads end with after that; nil: nothing new
	reads       int
	askedFor    []int64 // the counts of reads
	clocksAsked int
	ahead       time.Duration // of the bot's clock
	noTime      bool
}

// XRead waits where there is nothing, which is the time of the bubble.
func (s *server) XRead(_ context.Context, a *goredis.XReadArgs) *goredis.XStreamSliceCmd {
	s.reads++
	s.askedFor = append(s.askedFor, a.Count)
	n := min(int(a.Count), len(s.entries))
	if n == 0 {
		time.Sleep(max(a.Block, 0))
		if s.broken != nil {
			return goredis.NewXStreamSliceCmdResult(nil, s.broken)
		}
		return goredis.NewXStreamSliceCmdResult(nil, goredis.Nil)
	}
	got := goredis.XStream{Stream: a.Streams[0], Messages: s.entries[:n]}
	if !s.flood {
		s.entries = s.entries[n:]
	}
	return goredis.NewXStreamSliceCmdResult([]goredis.XStream{got}, nil)
}

// Eval knows one script, of the server that has the stream.
func (s *server) Eval(_ context.Context, script string, keys []string, _ ...any) *goredis.Cmd {
	s.clocksAsked++
	if script != "return redis.call('TIME')" || !slices.Equal(keys, []string{"{rpcpool}:facts"}) {
		return goredis.NewCmdResult(nil, errors.New("no such script"))
	}
	if s.noTime {
		return goredis.NewCmdResult([]any{}, nil)
	}
	now := time.Now().Add(s.ahead)
	return goredis.NewCmdResult([]any{fmt.Sprint(now.Unix()), fmt.Sprint(now.Nanosecond() / 1000)}, nil)
}

// entry is one that was added just now.
func entry(text string) goredis.XMessage {
	return goredis.XMessage{ID: fmt.Sprintf("%d-0", time.Now().UnixMilli()), Values: map[string]any{field: text}}
}

var errLost = errors.New("the server is lost")

// follow gives what is handed over until the server is lost.
func follow(t *testing.T, s *server) (taken [][]rpcpool.Fact) {
	t.Helper()
	s.broken = errLost
	err := New(s).Follow(t.Context(), func(facts []rpcpool.Fact) { taken = append(taken, facts) })
	require.ErrorIs(t, err, errLost)
	return taken
}

// However much is in the server, it is asked for little at a time and handed over an entry at
// a time.
func TestFollowReadsPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		begun := time.Now()
		var want [][]rpcpool.Fact
		for i := range 2*page + 1 {
			facts := all()[:1]
			facts[0].From = fmt.Sprint(i)
			want = append(want, facts)
			s.entries = append(s.entries, entry(encode(facts)))
		}
		taken := follow(t, s)
		require.Len(t, taken, len(want))
		for i := range taken {
			require.Len(t, taken[i], 1)
			require.Equal(t, want[i][0].From, taken[i][0].From)
		}
		require.Equal(t, []int64{64, 64, 64, 64}, s.askedFor)
		require.Equal(t, 3*rest+patience, time.Since(begun), "three answers, and a read in vain")
	})
}

// An entry that can't be read takes nothing of those after it along.
func TestFollowPassesOverWhatIsNotReadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := encode(all())
		s := &server{entries: []goredis.XMessage{
			entry(`[{"kind":`), entry("null"), entry(""), entry(string(make([]byte, 1<<20))),
			{ID: "5-5"}, {ID: "5-5", Values: map[string]any{"other": good}},
			{ID: "five", Values: map[string]any{field: good}},
			entry(good),
		}}
		require.Equal(t, [][]rpcpool.Fact{all()}, follow(t, s))
	})
}

// Ages are told by the clock of the server that has the streams, to the microsecond, whatever
// the time is elsewhere.
func TestFollowTellsAgesByTheStreamsClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{ahead: time.Hour + 250*time.Millisecond + 7*time.Microsecond}
		e := entry(encode(all()[:1]))
		e.ID = fmt.Sprintf("%d-0", time.Now().Add(time.Hour-2*time.Second).UnixMilli())
		s.entries = append(s.entries, e)
		taken := follow(t, s)
		require.Len(t, taken, 1)
		kept := 2*time.Second + 250*time.Millisecond + 7*time.Microsecond
		require.Equal(t, time.Second+kept, taken[0][0].Age)
		require.Equal(t, time.Minute-kept, taken[0][0].For)
	})
	err := New(&server{noTime: true}).Follow(t.Context(), func([]rpcpool.Fact) {})
	require.ErrorContains(t, err, "no time")
}

// However fast entries come, they cost ten reads and ten looks at the clock a second, and
// Follow ends in the middle of them when it is told to.
func TestFollowThroughAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{flood: true}
		for range page {
			s.entries = append(s.entries, entry(encode(all())))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second-rest/2)
		defer cancel()
		begun, taken := time.Now(), 0
		err := New(s).Follow(ctx, func([]rpcpool.Fact) { taken++ })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 10*time.Second-rest/2, time.Since(begun), "it ends at once")
		require.Equal(t, 100, s.reads)
		require.Equal(t, 101, s.clocksAsked, "one to begin with")
		require.Equal(t, 100*page, taken)
	})
}

// That it is connected is told even where there is nothing, and once.
func TestFollowTellsThatItIsConnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+time.Millisecond)
		defer cancel()
		var calls int
		err := New(s).Follow(ctx, func(facts []rpcpool.Fact) {
			require.Empty(t, facts)
			calls++
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 1, calls)
		require.Equal(t, 12, s.reads, "one at once, and one a second")
	})
}
