package main

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"io"
	"math/big"

	"github.com/bomzrpc/rpcpool/examples/ethclient/counter"
	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/accounts/abi/bind/v2"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
)

// bot knows go-ethereum and nothing of rings, proxies or failing RPCs.
type bot struct {
	client *ethclient.Client
	key    *ecdsa.PrivateKey // nil: it only reads
	out    io.Writer

	chainID  *big.Int
	contract common.Address
	since    uint64 // the block of the contract's creation
}

// run does one thing after another, and stops at the first that fails.
func (b *bot) run(ctx context.Context) error {
	steps := []func(context.Context) error{b.read}
	if b.key != nil {
		steps = append(steps, b.send, b.deploy, b.count, b.decodeReverts, b.readLogs)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b *bot) say(format string, args ...any) { fmt.Fprintf(b.out, format+"\n", args...) }

func (b *bot) read(ctx context.Context) (err error) {
	if b.chainID, err = b.client.ChainID(ctx); err != nil {
		return err
	}
	block, err := b.client.BlockByNumber(ctx, nil)
	if err != nil {
		return err
	}
	b.say("chain %d is at block %d, which has %d transactions", b.chainID, block.Number(), len(block.Transactions()))
	return nil
}

// send signs a transfer of nothing to the sender itself, sends it and waits for it.
func (b *bot) send(ctx context.Context) error {
	self := crypto.PubkeyToAddress(b.key.PublicKey)
	nonce, err := b.client.PendingNonceAt(ctx, self)
	if err != nil {
		return err
	}
	tip, err := b.client.SuggestGasTipCap(ctx)
	if err != nil {
		return err
	}
	head, err := b.client.HeaderByNumber(ctx, nil)
	if err != nil {
		return err
	}
	tx, err := types.SignNewTx(b.key, types.LatestSignerForChainID(b.chainID), &types.DynamicFeeTx{
		ChainID:   b.chainID,
		Nonce:     nonce,
		To:        &self,
		Gas:       21_000,
		GasTipCap: tip,
		GasFeeCap: new(big.Int).Add(tip, new(big.Int).Mul(head.BaseFee, big.NewInt(2))),
	})
	if err != nil {
		return err
	}
	if err := b.client.SendTransaction(ctx, tx); err != nil {
		return err
	}
	receipt, err := b.mined(ctx, tx)
	if err != nil {
		return err
	}
	b.say("sent a transaction: it is in block %d and took %d gas", receipt.BlockNumber, receipt.GasUsed)
	return nil
}

// mined waits for a transaction's receipt.
func (b *bot) mined(ctx context.Context, tx *types.Transaction) (*types.Receipt, error) {
	receipt, err := bind.WaitMined(ctx, b.client, tx.Hash())
	if err != nil {
		return nil, err
	}
	if receipt.Status != types.ReceiptStatusSuccessful {
		return nil, fmt.Errorf("the transaction %s failed", tx.Hash())
	}
	return receipt, nil
}

func (b *bot) options(ctx context.Context) *bind.TransactOpts {
	options := bind.NewKeyedTransactor(b.key, b.chainID)
	options.Context = ctx
	return options
}

func (b *bot) deploy(ctx context.Context) error {
	address, tx, err := bind.DeployContract(b.options(ctx), common.FromHex(counter.CounterMetaData.Bin), b.client, nil)
	if err != nil {
		return err
	}
	receipt, err := b.mined(ctx, tx)
	if err != nil {
		return err
	}
	b.contract, b.since = address, receipt.BlockNumber.Uint64()
	b.say("deployed a contract, in block %d", b.since)
	return nil
}

// count has the contract count, twice, and asks for the total.
func (b *bot) count(ctx context.Context) error {
	binding := counter.NewCounter()
	instance := binding.Instance(b.client, b.contract)
	for _, step := range []int64{3, 4} {
		tx, err := bind.Transact(instance, b.options(ctx), binding.PackCount(big.NewInt(step)))
		if err != nil {
			return err
		}
		if _, err := b.mined(ctx, tx); err != nil {
			return err
		}
	}
	total, err := bind.Call(instance, &bind.CallOpts{Context: ctx}, binding.PackTotal(), binding.UnpackTotal)
	if err != nil {
		return err
	}
	b.say("counted 3 and 4: the total is %d", total)
	return nil
}

// decodeReverts makes the contract refuse, in words and by an error of its own. Each
// comes from a node through the ring as it was, with code 3 and the data.
func (b *bot) decodeReverts(ctx context.Context) error {
	binding := counter.NewCounter()
	instance := binding.Instance(b.client, b.contract)

	_, err := bind.Call[struct{}](instance, &bind.CallOpts{Context: ctx}, binding.PackRefuse(), nil)
	data, ok := ethclient.RevertErrorData(err)
	if !ok {
		return fmt.Errorf("refuse() should have reverted, but: %w", orNone(err))
	}
	reason, err := abi.UnpackRevert(data)
	if err != nil {
		return err
	}
	b.say("the contract refused in words: %q", reason)

	// A transaction reverts when its gas is estimated, before anything is sent.
	_, err = bind.Transact(instance, b.options(ctx), binding.PackCount(big.NewInt(11)))
	data, ok = ethclient.RevertErrorData(err)
	if !ok || len(data) < 4 {
		return fmt.Errorf("count(11) should have reverted, but: %w", orNone(err))
	}
	refusal, err := binding.UnpackError(data)
	if err != nil {
		return err
	}
	if tooFar, ok := refusal.(*counter.CounterTooFar); ok {
		b.say("the contract refused by its own error: TooFar, asked %d, allowed %d", tooFar.Asked, tooFar.Allowed)
	}
	return nil
}

func orNone(err error) error {
	if err == nil {
		return errors.New("there was no error")
	}
	return err
}

func (b *bot) readLogs(ctx context.Context) error {
	head, err := b.client.BlockNumber(ctx)
	if err != nil {
		return err
	}
	logs, err := b.client.FilterLogs(ctx, ethereum.FilterQuery{
		FromBlock: new(big.Int).SetUint64(b.since),
		ToBlock:   new(big.Int).SetUint64(head),
		Addresses: []common.Address{b.contract},
	})
	if err != nil {
		return err
	}
	binding := counter.NewCounter()
	for i := range logs {
		event, err := binding.UnpackCountedEvent(&logs[i])
		if err != nil {
			return err
		}
		b.say("log in block %d: counted %d, total %d", logs[i].BlockNumber, event.Step, event.Total)
	}
	return nil
}
