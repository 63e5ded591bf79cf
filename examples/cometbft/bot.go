package main

import (
	"context"
	"fmt"
	"io"
	"time"

	comethttp "github.com/cometbft/cometbft/rpc/client/http"
	"github.com/cometbft/cometbft/types"
)

// pollEvery is how often a sent transaction is looked for.
const pollEvery = 200 * time.Millisecond

// bot knows CometBFT's client and nothing of rings, proxies or failing RPCs.
type bot struct {
	client *comethttp.HTTP
	tx     types.Tx // empty: it only reads
	out    io.Writer
}

func (b *bot) run(ctx context.Context) error {
	if err := b.read(ctx); err != nil {
		return err
	}
	if len(b.tx) == 0 {
		return nil
	}
	return b.send(ctx)
}

func (b *bot) say(format string, args ...any) { fmt.Fprintf(b.out, format+"\n", args...) }

// read asks for the status, and for two more things in one batch.
func (b *bot) read(ctx context.Context) error {
	status, err := b.client.Status(ctx)
	if err != nil {
		return err
	}
	b.say("%s is at height %d", status.NodeInfo.Network, status.SyncInfo.LatestBlockHeight)

	batch := b.client.NewBatch()
	header, err := batch.Header(ctx, &status.SyncInfo.LatestBlockHeight)
	if err != nil {
		return err
	}
	validators, err := batch.Validators(ctx, &status.SyncInfo.LatestBlockHeight, nil, nil)
	if err != nil {
		return err
	}
	if _, err := batch.Send(ctx); err != nil {
		return err
	}
	b.say("block %d has %d validators", header.Header.Height, validators.Total)
	return nil
}

// send sends the transaction and waits until a block has it.
func (b *bot) send(ctx context.Context) error {
	sent, err := b.client.BroadcastTxSync(ctx, b.tx)
	if err != nil {
		return err
	}
	if sent.Code != 0 {
		return fmt.Errorf("the chain refused the transaction, code %d: %s", sent.Code, sent.Log)
	}
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		found, err := b.client.TxSearch(ctx, fmt.Sprintf("tx.hash='%X'", sent.Hash), false, nil, nil, "")
		if err != nil {
			return err
		}
		if len(found.Txs) > 0 {
			b.say("sent a transaction: it is in block %d", found.Txs[0].Height)
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}
