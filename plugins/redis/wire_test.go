package redis

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
)

var id = strings.Repeat("0a", 32)

func all() []rpcpool.Fact {
	return []rpcpool.Fact{
		{Kind: rpcpool.FactCooldown, From: "p", Chain: "eip155:1", ID: id, Label: "https://rpc.test/***", For: time.Minute, Age: time.Second},
		{Kind: rpcpool.FactRest, Chain: "eip155:1", ID: id, For: time.Second},
		{Kind: rpcpool.FactUnsupported, Chain: "eip155:1", ID: id, Method: "debug_x", For: 600 * time.Second},
		{Kind: rpcpool.FactHead, Chain: "eip155:1", ID: id, Head: 1 << 60, For: 15 * time.Second},
		{Kind: rpcpool.FactProxyDead, ID: id, For: 60 * time.Second},
		{Kind: rpcpool.FactClear, Chain: "eip155:1", ID: id},
		{Kind: rpcpool.FactClear, ID: id},
	}
}

// A fact is read as it was written; one that lay in the server for a while has that time
// taken off what is left of it, and one that has ceased to hold isn't read.
func TestFactsOverTheWire(t *testing.T) {
	require.Equal(t, all(), decode(encode(all()), 0))
	late := decode(encode(all()), 20*time.Second)
	require.Len(t, late, 5, "neither the rest nor the head holds for 20 s")
	require.Equal(t, 40*time.Second, late[0].For)
	require.Equal(t, 21*time.Second, late[0].Age)
	require.Equal(t, rpcpool.FactClear, late[3].Kind)
	require.Equal(t, all()[0].For, decode(encode(all()), -time.Hour)[0].For, "a server's clock that went back adds nothing")
}

// Whatever is in the server, what comes out is good facts with times that can be counted with.
func FuzzDecode(f *testing.F) {
	f.Add(encode(all()), int64(0))
	f.Add(`[{"kind":"cooldown","chain":"eip155:1","id":"`+id+`","for_ms":9223372036854775807,"age_ms":9223372036854775807}]`, int64(-1))
	f.Add(`[{"kind":"cooldown","for_ms":-1},null,{"id":7}]`, int64(1)<<62)
	f.Add(`{}`, int64(5))
	f.Fuzz(func(t *testing.T, text string, kept int64) {
		for _, fact := range decode(text, time.Duration(kept)) {
			require.True(t, fact.Valid())
			require.LessOrEqual(t, fact.For, 900*time.Second)
			require.LessOrEqual(t, fact.Age, 2*900*time.Second)
			again := decode(encode([]rpcpool.Fact{fact}), 0)
			if fact.Kind == rpcpool.FactClear || fact.For >= time.Millisecond {
				require.Len(t, again, 1)
				require.Equal(t, fact.ID, again[0].ID)
			}
		}
	})
}

// An entry that is too large is passed over; of one with too many facts the first are taken.
func TestEntriesAreBounded(t *testing.T) {
	many := make([]rpcpool.Fact, 257)
	for i := range many {
		many[i] = rpcpool.Fact{Kind: rpcpool.FactClear, ID: id, From: fmt.Sprint(i)}
	}
	require.Equal(t, many[:256], decode(encode(many), 0))
	require.Equal(t, many[:256], decode(encode(many[:256]), 0))
	require.Empty(t, decode(`[{"kind":"clear","id":"`+id+`","x":"`+strings.Repeat("x", 256<<10)+`"}]`, 0))
}
