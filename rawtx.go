package rpcpool

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"strings"

	"golang.org/x/crypto/sha3"
)

// blobTx is the type of transactions that travel with blobs, which aren't a part of what
// is hashed (EIP-4844).
const blobTx = 0x03

// transactionHash is the hash of a raw transaction: Keccak-256 of its bytes (rule A6.3),
// without the blobs that it may travel with.
func transactionHash(raw []byte) string {
	if len(raw) > 1 && raw[0] == blobTx {
		if items, ok := rlpList(raw[1:]); ok && len(items) > 0 && isRLPList(items[0]) {
			raw = append([]byte{blobTx}, items[0]...)
		}
	}
	return "0x" + hex.EncodeToString(keccak256(raw))
}

// transactionNonce reads the nonce of a raw transaction of a known type.
func transactionNonce(raw []byte) (uint64, bool) {
	at := 0
	if len(raw) == 0 {
		return 0, false
	}
	if raw[0] < 0x80 { // typed: the chain's id comes first
		raw, at = raw[1:], 1
	}
	items, ok := rlpList(raw)
	if ok && len(items) > 0 && isRLPList(items[0]) { // with blobs
		items, ok = rlpList(items[0])
	}
	if !ok || len(items) <= at {
		return 0, false
	}
	return rlpNumber(items[at])
}

// rawTransactionHash is the hash of the raw transaction in params, as JSON.
func rawTransactionHash(params []byte) (json.RawMessage, bool) {
	var list []json.RawMessage
	if json.Unmarshal(params, &list) != nil || len(list) == 0 {
		return nil, false
	}
	text, ok := decode[string](list[0])
	if !ok {
		return nil, false
	}
	raw, ok := decodeHex(text)
	if !ok {
		return nil, false
	}
	return json.RawMessage(`"` + transactionHash(raw) + `"`), true
}

// lookUp asks for a raw transaction by its hash, one RPC after another until one has it:
// that one of them doesn't is no verdict (rule C4). Whatever else comes of it is no.
func (c *chainState) lookUp(ctx context.Context, params []byte) (hash json.RawMessage, found bool) {
	hash, ok := rawTransactionHash(params)
	if !ok {
		return nil, false
	}
	tx, err := c.transaction(ctx, hash)
	return hash, err == nil && strings.EqualFold(`"`+tx.Hash+`"`, string(hash))
}

// minedTransaction is what is read of a transaction that a node has.
type minedTransaction struct {
	Hash, From, Nonce string
	BlockHash         string // empty as long as it is pending
}

// transaction gives a transaction that any RPC has. A *NoHealthyRPCError says that none of
// those that answered has it.
func (c *chainState) transaction(ctx context.Context, hash json.RawMessage) (tx minedTransaction, err error) {
	params := append(append([]byte("["), hash...), ']')
	raw, err := c.do(ctx, &presentRequest{callRequest: newEncodedRequest(c.pool, methodTransaction, params)})
	if err != nil {
		return tx, err
	}
	if json.Unmarshal(raw, &tx) != nil {
		return tx, &MalformedResponseError{Method: methodTransaction, Reason: "no transaction"}
	}
	return tx, nil
}

// decodeHex reads bytes such as "0x02f8…"; none are no bytes.
func decodeHex(text string) ([]byte, bool) {
	digits, found := strings.CutPrefix(text, "0x")
	raw, err := hex.DecodeString(digits)
	return raw, found && err == nil && len(raw) > 0
}

func keccak256(data []byte) []byte {
	h := sha3.NewLegacyKeccak256()
	h.Write(data)
	return h.Sum(nil)
}

// RLP, as much of it as the above needs.

func isRLPList(item []byte) bool { return len(item) > 0 && item[0] >= 0xc0 }

// rlpList gives the items of a list that data is, each with its head.
func rlpList(data []byte) (items [][]byte, ok bool) {
	if !isRLPList(data) {
		return nil, false
	}
	body, rest, ok := rlpSplit(data)
	if !ok || len(rest) > 0 {
		return nil, false
	}
	for len(body) > 0 {
		_, after, ok := rlpSplit(body)
		if !ok {
			return nil, false
		}
		items = append(items, body[:len(body)-len(after)])
		body = after
	}
	return items, true
}

// rlpSplit takes the first item's content off data.
func rlpSplit(data []byte) (content, rest []byte, ok bool) {
	if len(data) == 0 {
		return nil, nil, false
	}
	head, size := 1, uint64(0)
	switch b := data[0]; {
	case b < 0x80:
		return data[:1], data[1:], true
	case b < 0xb8:
		size = uint64(b - 0x80)
	case b >= 0xc0 && b < 0xf8:
		size = uint64(b - 0xc0)
	default:
		n := int(b&0x3f) - 0x37 // bytes of the size, 8 at most
		if len(data) < 1+n {
			return nil, nil, false
		}
		for _, digit := range data[1 : 1+n] {
			size = size<<8 | uint64(digit)
		}
		head += n
	}
	if size > uint64(len(data)-head) {
		return nil, nil, false
	}
	end := head + int(size)
	return data[head:end], data[end:], true
}

// rlpNumber reads an item that is a number.
func rlpNumber(item []byte) (uint64, bool) {
	content, _, ok := rlpSplit(item)
	if !ok || isRLPList(item) || len(content) > 8 || bytes.HasPrefix(content, []byte{0}) {
		return 0, false
	}
	number := uint64(0)
	for _, digit := range content {
		number = number<<8 | uint64(digit)
	}
	return number, true
}
