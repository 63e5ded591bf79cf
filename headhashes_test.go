package rpcpool

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Of the hashes of blocks the newest are remembered, and never more than so many; where old
// blocks are read, the latest read.
func TestRememberedHashes(t *testing.T) {
	const blocks = 10 * rememberedHashes
	for name, number := range map[string]func(i uint64) uint64{
		"forwards":  func(i uint64) uint64 { return i },
		"backwards": func(i uint64) uint64 { return blocks - i },
	} {
		t.Run(name, func(t *testing.T) {
			v, one, other := headView{}, &endpoint{}, &endpoint{}
			for i := range uint64(blocks) {
				hash := fmt.Sprint("0xA", i)
				news := v.noteHash(one, number(i), hash)
				require.False(t, news.any())
				require.LessOrEqual(t, len(v.hashes), rememberedHashes)
				if name == "forwards" && i >= rememberedHashes/2 {
					require.Contains(t, v.hashes, i-rememberedHashes/2)
				}
				news = v.noteHash(other, number(i), hash+"b")
				require.Same(t, one, news.conflict, "the block that was just noted is remembered")
			}
		})
	}
}

// Of one block the hashes of so many RPCs are remembered, and no more.
func TestRememberedSayers(t *testing.T) {
	var v headView
	for range 3 * rememberedSayers {
		v.noteHash(&endpoint{}, 1, "0xaa")
	}
	require.Len(t, v.hashes[1], rememberedSayers)
	news := v.noteHash(&endpoint{}, 1, "0xAA")
	require.False(t, news.any(), "letters' case is no difference")
}
