package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/gagliardetto/solana-go/rpc/jsonrpc"
)

// pollEvery is how often a sent transaction is looked for: about once a slot.
const pollEvery = 400 * time.Millisecond

// bot knows solana-go and nothing of rings, proxies or failing RPCs.
type bot struct {
	client *rpc.Client
	key    solana.PrivateKey // nil: it only reads
	out    io.Writer
}

// run does one thing after another, and stops at the first that fails.
func (b *bot) run(ctx context.Context) error {
	steps := []func(context.Context) error{b.read}
	if b.key != nil {
		steps = append(steps, b.readBalances, b.transfer)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b *bot) say(format string, args ...any) { fmt.Fprintf(b.out, format+"\n", args...) }

func (b *bot) read(ctx context.Context) error {
	slot, err := b.client.GetSlot(ctx, rpc.CommitmentConfirmed)
	if err != nil {
		return err
	}
	b.say("the chain is at slot %d", slot)
	return nil
}

// readBalances asks for several balances in one batch.
func (b *bot) readBalances(ctx context.Context) error {
	var batch jsonrpc.RPCRequests
	for _, account := range []solana.PublicKey{b.key.PublicKey(), solana.SystemProgramID} {
		batch = append(batch, jsonrpc.NewRequest("getBalance", account.String()))
	}
	answers, err := b.client.RPCCallBatch(ctx, batch)
	if err != nil {
		return err
	}
	for _, answer := range answers {
		if answer.Error != nil {
			return answer.Error
		}
		var balance rpc.GetBalanceResult
		if err := answer.GetObject(&balance); err != nil {
			return err
		}
		b.say("balance: %d lamports", balance.Value)
	}
	return nil
}

// transfer sends 1 lamport to the sender itself, and waits until that is confirmed.
func (b *bot) transfer(ctx context.Context) error {
	latest, err := b.client.GetLatestBlockhash(ctx, rpc.CommitmentConfirmed)
	if err != nil {
		return err
	}
	self := b.key.PublicKey()
	tx, err := solana.NewTransaction(
		[]solana.Instruction{system.NewTransferInstruction(1, self, self).Build()},
		latest.Value.Blockhash,
		solana.TransactionPayer(self),
	)
	if err != nil {
		return err
	}
	if _, err := tx.Sign(func(solana.PublicKey) *solana.PrivateKey { return &b.key }); err != nil {
		return err
	}
	signature, err := b.client.SendTransaction(ctx, tx)
	if err != nil {
		return err
	}
	slot, err := b.confirmed(ctx, signature)
	if err != nil {
		return err
	}
	b.say("sent a transfer, confirmed in slot %d", slot)
	return nil
}

// confirmed waits until a transaction is confirmed.
func (b *bot) confirmed(ctx context.Context, signature solana.Signature) (slot uint64, err error) {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		statuses, err := b.client.GetSignatureStatuses(ctx, false, signature)
		if err != nil {
			return 0, err
		}
		if s := statuses.Value[0]; s != nil && s.ConfirmationStatus != rpc.ConfirmationStatusProcessed {
			if s.Err != nil {
				return 0, fmt.Errorf("the transaction failed: %v", s.Err)
			}
			return s.Slot, nil
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-ticker.C:
		}
	}
}
