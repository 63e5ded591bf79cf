package redis

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/bomzrpc/rpcpool"
)

const (
	defaultPrefix = "rpcpool"
	longest       = 900 * time.Second // that any fact holds
	streamTTL     = time.Hour
	factEntries   = 10_000
	headEntries   = 200
	page          = 64 // entries of each stream in one answer
	field         = "facts"
)

// patience is how long one XREAD waits. go-redis doesn't end a command that is under way
// when its context ends, so Follow may return as much later. It gives a server 10 s beyond
// for the answer, and doesn't send such a command twice: where the server hangs, Follow ends
// after 11 s.
const patience = time.Second

// rest is how long Follow waits after an answer with entries, so that no flood of them costs
// more than ten reads a second.
const rest = 100 * time.Millisecond

// View is an [rpcpool.SharedView] over Redis. It is safe for concurrent use, and several
// pools may have the same one.
type View struct {
	client       goredis.UniversalClient
	facts, heads string // the streams
}

var _ rpcpool.SharedView = (*View)(nil)

// Option changes a View.
type Option func(*View)

// Prefix has the streams named {prefix}:facts and {prefix}:heads. Bots with another prefix
// are another fleet. Default, and for an empty one: rpcpool.
func Prefix(prefix string) Option {
	return func(v *View) {
		if prefix != "" {
			v.name(prefix)
		}
	}
}

// New makes a view over a client: of one server, of a cluster, or of sentinels. Nothing is
// sent. The client stays the caller's, who closes it after the pools.
func New(client goredis.UniversalClient, opts ...Option) *View {
	v := &View{client: client}
	v.name(defaultPrefix)
	for _, opt := range opts {
		if opt != nil {
			opt(v)
		}
	}
	return v
}

func (v *View) name(prefix string) {
	v.facts, v.heads = "{"+prefix+"}:facts", "{"+prefix+"}:heads"
}

// Publish adds facts to the streams, and has these end an hour later.
func (v *View) Publish(ctx context.Context, facts []rpcpool.Fact) error {
	var lasting, heads []rpcpool.Fact
	for i := range facts {
		if facts[i].Kind == rpcpool.FactHead {
			heads = append(heads, facts[i])
		} else {
			lasting = append(lasting, facts[i])
		}
	}
	_, err := v.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		add(ctx, p, v.facts, factEntries, lasting)
		add(ctx, p, v.heads, headEntries, heads)
		return nil
	})
	return err
}

func add(ctx context.Context, p goredis.Pipeliner, stream string, entries int64, facts []rpcpool.Fact) {
	if len(facts) == 0 {
		return
	}
	p.XAdd(ctx, &goredis.XAddArgs{Stream: stream, MaxLen: entries, Approx: true, Values: []string{field, encode(facts)}})
	p.Expire(ctx, stream, streamTTL)
}

// Follow hands over the facts of the last 900 s, and then what comes, an entry at a time,
// until ctx ends or the server is lost. Entries that can't be read are passed over.
func (v *View) Follow(ctx context.Context, take func([]rpcpool.Fact)) error {
	now, err := v.clock(ctx)
	if err != nil {
		return err
	}
	// Of heads only those to come are of use.
	at := strconv.FormatInt(now.Add(-longest).UnixMilli(), 10) + "-0"
	heads := strconv.FormatInt(now.UnixMilli(), 10) + "-0"
	wait := time.Duration(-1) // the first read doesn't
	for connected := false; ; wait = patience {
		streams, err := v.client.XRead(ctx, &goredis.XReadArgs{
			Streams: []string{v.facts, v.heads, at, heads}, Count: page, Block: wait,
		}).Result()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, goredis.Nil): // nothing new
		case err != nil:
			return err
		}
		if len(streams) > 0 {
			if now, err = v.clock(ctx); err != nil {
				return err
			}
		}
		for _, stream := range streams {
			for i := range stream.Messages {
				entry := &stream.Messages[i]
				if facts := read(entry, now); len(facts) > 0 {
					take(facts)
					connected = true
				}
				if stream.Stream == v.facts {
					at = entry.ID
				} else {
					heads = entry.ID
				}
			}
		}
		if !connected {
			take(nil)
			connected = true
		}
		if len(streams) > 0 {
			select {
			case <-time.After(rest):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// clock tells the time of the server that has the streams, which gives the entries their ids.
// TIME has no key, so a cluster would have any of its servers answer it; a script goes where
// its key is.
func (v *View) clock(ctx context.Context) (time.Time, error) {
	answer, err := v.client.Eval(ctx, "return redis.call('TIME')", []string{v.facts}).Int64Slice()
	if err != nil {
		return time.Time{}, err
	}
	if len(answer) != 2 { // seconds and microseconds
		return time.Time{}, errors.New("the server tells no time")
	}
	return time.Unix(answer[0], answer[1]*int64(time.Microsecond)), nil
}

// read gives the facts of an entry that hold at now, which is a moment of the server's clock
// as the entry's id is.
func read(entry *goredis.XMessage, now time.Time) []rpcpool.Fact {
	text, ok := entry.Values[field].(string)
	if !ok {
		return nil
	}
	millis, _, _ := strings.Cut(entry.ID, "-")
	added, err := strconv.ParseInt(millis, 10, 64)
	if err != nil {
		return nil
	}
	return decode(text, now.Sub(time.UnixMilli(added)))
}
