package sdk

import (
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/stretchr/testify/require"
)

// The contract of the test is the Counter of examples/ethclient: count(step) adds
// and logs, and reverts by an error of its own above 10; refuse() reverts in words.
const counterCode = "0x6080604052348015600f57600080fd5b506101808061001f6000396000f3fe608060405234801561001057600080fd5b50600436106100415760003560e01c80632ddbd13a146100465780633b3546c81461006157806362c69b8014610076575b600080fd5b61004f60005481565b60405190815260200160405180910390f35b61007461006f366004610140565b61007e565b005b61007461010c565b600a8111156100af5760405163e3dbd75b60e01b815260048101829052600a60248201526044015b60405180910390fd5b806000808282546100c09190610159565b909155505060005460405133917f6d5ac8cb8937b5a656fc2cba7f07defd379bc116df48f519cfaf883f294382369161010191858252602082015260400190565b60405180910390a250565b60405162461bcd60e51b81526020600482015260096024820152686e6f7420746f64617960b81b60448201526064016100a6565b60006020828403121561015257600080fd5b5035919050565b8082018082111561017a57634e487b7160e01b600052601160045260246000fd5b9291505056"

var (
	countSelector  = common.FromHex("0x3b3546c8")
	totalSelector  = common.FromHex("0x2ddbd13a")
	refuseSelector = common.FromHex("0x62c69b80")
	countedTopic   = crypto.Keccak256Hash([]byte("Counted(address,uint256,uint256)"))
)

func countData(step int64) []byte {
	return append(append([]byte{}, countSelector...), common.BigToHash(big.NewInt(step)).Bytes()...)
}

// history is what the reads of the run ask for: blocks, transactions and logs that
// don't change any more.
type history struct {
	chainID  *big.Int
	head     uint64
	blocks   []common.Hash // by number
	txs      []common.Hash
	contract common.Address
	accounts []common.Address
}

// sender has an account of its own, so that its nonces are.
type sender struct {
	transact func(to *common.Address, gas uint64, value *big.Int, data []byte) *types.Transaction
	address  common.Address
	nonce    uint64 // the next
}

const (
	historyRounds = 40
	roundTxs      = 3
	// transferGas is more than 21,000: on new forks an account that is new costs extra.
	transferGas = 300_000
)

// makeHistory deploys the contract, pays the senders and has the contract count, by
// the direct client.
func makeHistory(t *testing.T, n *realNode, direct *ethclient.Client, payTo []common.Address) *history {
	t.Helper()
	ctx := patience(t, time.Minute)
	h := &history{accounts: append([]common.Address{addressOf(n.rich)}, payTo...)}
	var err error
	h.chainID, err = direct.ChainID(ctx)
	require.NoError(t, err)
	rich := senderOf(t, n.rich, h.chainID)
	rich.nonce, err = direct.NonceAt(ctx, rich.address, nil)
	require.NoError(t, err)

	send := func(tx *types.Transaction) {
		require.NoError(t, direct.SendTransaction(ctx, tx))
		h.txs = append(h.txs, tx.Hash())
	}
	mined := func() {
		require.Eventually(t, func() bool {
			n.mine() // once isn't always enough: a transaction may be in the pool, but not ready yet
			receipt, err := direct.TransactionReceipt(ctx, h.txs[len(h.txs)-1])
			return err == nil && receipt.Status == types.ReceiptStatusSuccessful
		}, 20*time.Second, 5*time.Millisecond, "a transaction of the history isn't mined")
	}
	h.contract = crypto.CreateAddress(rich.address, rich.nonce)
	send(rich.transact(nil, 5_000_000, nil, common.FromHex(counterCode)))
	mined()
	for _, account := range payTo {
		send(rich.transact(&account, transferGas, ether(1), nil))
	}
	mined()
	for range historyRounds {
		for step := range int64(roundTxs) {
			send(rich.transact(&h.contract, 500_000, nil, countData(step+1)))
		}
		mined()
	}
	h.head, err = direct.BlockNumber(ctx)
	require.NoError(t, err)
	for number := range h.head + 1 {
		header, err := direct.HeaderByNumber(ctx, new(big.Int).SetUint64(number))
		require.NoError(t, err)
		h.blocks = append(h.blocks, header.Hash())
	}
	return h
}
