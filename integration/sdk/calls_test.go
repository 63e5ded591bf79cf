package sdk

import (
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
)

// call is one use of ethclient. Those with the same name are answered the same.
type call struct {
	name string
	do   func(ctx context.Context, client *ethclient.Client) error
}

// read is a call that asks about the history.
func (h *history) read(dice *rand.Rand) call {
	number := dice.Uint64N(h.head + 1)
	at := new(big.Int).SetUint64(number)
	block := h.blocks[number]
	tx := h.txs[dice.IntN(len(h.txs))]
	account := h.accounts[dice.IntN(len(h.accounts))]
	switch kind := dice.IntN(20); kind {
	case 0:
		return call{"chain id", func(ctx context.Context, c *ethclient.Client) error { return second(c.ChainID(ctx)) }}
	case 1, 2:
		return call{fmt.Sprint("block ", number), func(ctx context.Context, c *ethclient.Client) error { return second(c.BlockByNumber(ctx, at)) }}
	case 3:
		return call{fmt.Sprint("block ", block), func(ctx context.Context, c *ethclient.Client) error { return second(c.BlockByHash(ctx, block)) }}
	case 4:
		return call{fmt.Sprint("header ", number), func(ctx context.Context, c *ethclient.Client) error { return second(c.HeaderByNumber(ctx, at)) }}
	case 5, 6, 7:
		return call{fmt.Sprint("receipt ", tx), func(ctx context.Context, c *ethclient.Client) error { return second(c.TransactionReceipt(ctx, tx)) }}
	case 8:
		return call{fmt.Sprint("receipts ", number), func(ctx context.Context, c *ethclient.Client) error {
			return second(c.BlockReceipts(ctx, rpc.BlockNumberOrHashWithNumber(rpc.BlockNumber(number))))
		}}
	case 9:
		return call{fmt.Sprint("transaction ", tx), func(ctx context.Context, c *ethclient.Client) error {
			_, _, err := c.TransactionByHash(ctx, tx)
			return err
		}}
	case 10, 11, 12:
		return h.contractCall(dice, number)
	case 13:
		return call{fmt.Sprint("balance ", account, number), func(ctx context.Context, c *ethclient.Client) error { return second(c.BalanceAt(ctx, account, at)) }}
	case 14:
		return call{fmt.Sprint("nonce ", account, number), func(ctx context.Context, c *ethclient.Client) error { return second(c.NonceAt(ctx, account, at)) }}
	case 15:
		return call{fmt.Sprint("storage ", number), func(ctx context.Context, c *ethclient.Client) error {
			return second(c.StorageAt(ctx, h.contract, common.Hash{}, at))
		}}
	case 16, 17:
		return h.logs(dice)
	default:
		return h.batch(dice)
	}
}

// contractCall reads the total at some block, or is reverted.
func (h *history) contractCall(dice *rand.Rand, number uint64) call {
	data := [][]byte{totalSelector, totalSelector, refuseSelector, countData(11)}[dice.IntN(4)]
	message := ethereum.CallMsg{From: h.accounts[0], To: &h.contract, Data: data}
	at := new(big.Int).SetUint64(number)
	return call{fmt.Sprintf("call %x %d", data, number), func(ctx context.Context, c *ethclient.Client) error {
		return second(c.CallContract(ctx, message, at))
	}}
}

func (h *history) logs(dice *rand.Rand) call {
	from := dice.Uint64N(h.head + 1)
	to := from + dice.Uint64N(h.head+1-from)
	query := ethereum.FilterQuery{
		FromBlock: new(big.Int).SetUint64(from),
		ToBlock:   new(big.Int).SetUint64(to),
		Addresses: []common.Address{h.contract},
		Topics:    [][]common.Hash{{countedTopic}},
	}
	return call{fmt.Sprint("logs ", from, to), func(ctx context.Context, c *ethclient.Client) error { return second(c.FilterLogs(ctx, query)) }}
}

// batch has elements of several kinds: results, null, a revert, bad params.
func (h *history) batch(dice *rand.Rand) call {
	number, tx := dice.IntN(len(h.blocks)), h.txs[dice.IntN(len(h.txs))]
	at := fmt.Sprintf("0x%x", number)
	elements := []rpc.BatchElem{
		{Method: "eth_getBlockByNumber", Args: []any{at, true}},
		{Method: "eth_getTransactionReceipt", Args: []any{tx}},
		{Method: "eth_getTransactionReceipt", Args: []any{common.Hash{1}}}, // null
		{Method: "eth_getBalance", Args: []any{h.accounts[0], at}},
		{Method: "eth_call", Args: []any{map[string]any{"to": h.contract, "data": fmt.Sprintf("0x%x", refuseSelector)}, "latest"}},
		{Method: "eth_getBlockByNumber", Args: []any{"0xnonsense", false}},
		{Method: "eth_chainId"},
	}
	return call{fmt.Sprint("batch ", number, tx), func(ctx context.Context, c *ethclient.Client) error {
		mine := make([]rpc.BatchElem, len(elements))
		for i, element := range elements {
			mine[i] = element
			mine[i].Result = new(any)
		}
		if err := c.Client().BatchCallContext(ctx, mine); err != nil {
			return err
		}
		text := ""
		for i, element := range mine {
			if element.Error != nil {
				text += fmt.Sprintf("%d: %v; ", i, element.Error)
			}
		}
		return fmt.Errorf("%s", text) // the elements' errors are compared, too
	}}
}

func second[T any](_ T, err error) error { return err }
