package rpcpool

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// rlp writes an item, or a list of what was written before, as the yellow paper has it.
func rlp(short, long byte, content []byte) []byte {
	if len(content) <= 55 {
		return append([]byte{short + byte(len(content))}, content...)
	}
	var size []byte
	for n := len(content); n > 0; n >>= 8 {
		size = append([]byte{byte(n)}, size...)
	}
	return append(append([]byte{long + byte(len(size))}, size...), content...)
}

func rlpText(content ...byte) []byte {
	if len(content) == 1 && content[0] < 0x80 {
		return content
	}
	return rlp(0x80, 0xb7, content)
}

func rlpListOf(items ...[]byte) []byte { return rlp(0xc0, 0xf7, bytes.Join(items, nil)) }

// The example of EIP-155, whose hash and nonce are known.
func TestHashAndNonceOfAKnownTransaction(t *testing.T) {
	raw, err := hex.DecodeString("f86c098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a764000080" +
		"25a028ef61340bd939bc2195fe537567866003e1a15d3c71ff63e1590620aa636276a067cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83")
	require.NoError(t, err)
	require.Equal(t, "0x33469b22e9f636356c4160a87eb19df52b7412e8eac32a4a55ffe88ea8350788", transactionHash(raw))
	nonce, ok := transactionNonce(raw)
	require.True(t, ok)
	require.Equal(t, uint64(9), nonce)
}

// The nonce of every type is found, whatever the lengths of what stands around it.
func TestNonces(t *testing.T) {
	var lengths []int
	for n := range 60 { // of which some make the list 55 bytes long, the last with a short head
		lengths = append(lengths, n)
	}
	for _, c := range []struct {
		item []byte
		want uint64
	}{
		{rlpText(), 0}, {rlpText(7), 7}, {rlpText(0x7f), 127}, {rlpText(0x80), 128}, {rlpText(1, 0), 256},
		{rlpText(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), 1<<64 - 1},
	} {
		for _, data := range append(lengths, 250, 256, 300, 70_000) {
			rest := rlpText(bytes.Repeat([]byte{0xee}, data)...)
			chainID := rlpText(1, 2)
			typed := rlpListOf(chainID, c.item, rest)
			blobs := rlpListOf(typed, rlpListOf(rest), rlpListOf(), rlpListOf())
			raws := map[string][]byte{"legacy": rlpListOf(c.item, rest), "with blobs": append([]byte{3}, blobs...)}
			for kind := byte(1); kind <= 4; kind++ {
				raws[fmt.Sprint("type ", kind)] = append([]byte{kind}, typed...)
			}
			for name, raw := range raws {
				nonce, ok := transactionNonce(raw)
				require.True(t, ok, "%s, %d bytes", name, data)
				require.Equal(t, c.want, nonce, "%s, %d bytes", name, data)
			}
			require.Equal(t, transactionHash(raws["type 3"]), transactionHash(raws["with blobs"]), "%d bytes", data)
			require.NotEqual(t, transactionHash(raws["type 2"]), transactionHash(append([]byte{2}, blobs...)), "only type 3 has blobs")
		}
	}
}

// What isn't a transaction has no nonce, and its hash is that of the bytes.
func TestNoNonces(t *testing.T) {
	nine := rlpText(bytes.Repeat([]byte{1}, 9)...)
	for name, raw := range map[string][]byte{
		"nothing": {}, "a type alone": {2}, "no list": {2, 0x81, 0x80}, "an empty list": {0xc0}, "a typed one of one item": append([]byte{2}, rlpListOf(rlpText(1))...),
		"a list for a nonce": append([]byte{2}, rlpListOf(rlpText(1), rlpListOf())...), "nine bytes": rlpListOf(nine),
		"a zero in front": rlpListOf([]byte{0x82, 0, 7}), "zero as a byte": rlpListOf([]byte{0}),
		"bytes behind": append(rlpListOf(rlpText(7)), 0), "cut": rlpListOf(rlpText(7), rlpText(1, 2, 3))[:4],
		"an item that is longer than its list": {0xc2, 7, 0x85}, "a size that is cut": {0xf9, 1}, "a size of all there is": {0xff, 255, 255, 255, 255, 255, 255, 255, 255},
	} {
		_, ok := transactionNonce(raw)
		require.False(t, ok, name)
		require.Equal(t, "0x"+hex.EncodeToString(keccak256(raw)), transactionHash(raw), name)
		require.Equal(t, "0x"+hex.EncodeToString(keccak256(append([]byte{3}, raw...))), transactionHash(append([]byte{3}, raw...)), name)
	}
}
