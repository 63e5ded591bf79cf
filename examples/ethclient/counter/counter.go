// Code generated via abigen V2 - DO NOT EDIT.
// This file is a generated binding and any manual changes will be lost.

package counter

import (
	"bytes"
	"errors"
	"math/big"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/accounts/abi/bind/v2"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Reference imports to suppress errors if they are not otherwise used.
var (
	_ = bytes.Equal
	_ = errors.New
	_ = big.NewInt
	_ = common.Big1
	_ = types.BloomLookup
	_ = abi.ConvertType
)

// CounterMetaData contains all meta data concerning the Counter contract.
var CounterMetaData = bind.MetaData{
	ABI: "[{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"asked\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"allowed\",\"type\":\"uint256\"}],\"name\":\"TooFar\",\"type\":\"error\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"address\",\"name\":\"who\",\"type\":\"address\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"step\",\"type\":\"uint256\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"total\",\"type\":\"uint256\"}],\"name\":\"Counted\",\"type\":\"event\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"step\",\"type\":\"uint256\"}],\"name\":\"count\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"refuse\",\"outputs\":[],\"stateMutability\":\"pure\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"total\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"}]",
	ID:  "Counter",
	Bin: "0x6080604052348015600f57600080fd5b506101808061001f6000396000f3fe608060405234801561001057600080fd5b50600436106100415760003560e01c80632ddbd13a146100465780633b3546c81461006157806362c69b8014610076575b600080fd5b61004f60005481565b60405190815260200160405180910390f35b61007461006f366004610140565b61007e565b005b61007461010c565b600a8111156100af5760405163e3dbd75b60e01b815260048101829052600a60248201526044015b60405180910390fd5b806000808282546100c09190610159565b909155505060005460405133917f6d5ac8cb8937b5a656fc2cba7f07defd379bc116df48f519cfaf883f294382369161010191858252602082015260400190565b60405180910390a250565b60405162461bcd60e51b81526020600482015260096024820152686e6f7420746f64617960b81b60448201526064016100a6565b60006020828403121561015257600080fd5b5035919050565b8082018082111561017a57634e487b7160e01b600052601160045260246000fd5b9291505056",
}

// Counter is an auto generated Go binding around an Ethereum contract.
type Counter struct {
	abi abi.ABI
}

// GetABI returns the ABI associated with this contract binding.
func (c *Counter) GetABI() abi.ABI {
	return c.abi
}

// NewCounter creates a new instance of Counter.
func NewCounter() *Counter {
	parsed, err := CounterMetaData.ParseABI()
	if err != nil {
		panic(errors.New("invalid ABI: " + err.Error()))
	}
	return &Counter{abi: *parsed}
}

// Instance creates a wrapper for a deployed contract instance at the given address.
// Use this to create the instance object passed to abigen v2 library functions Call, Transact, etc.
func (c *Counter) Instance(backend bind.ContractBackend, addr common.Address) *bind.BoundContract {
	return bind.NewBoundContract(addr, c.abi, backend, backend, backend)
}

// PackCount is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x3b3546c8.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function count(uint256 step) returns()
func (counter *Counter) PackCount(step *big.Int) []byte {
	enc, err := counter.abi.Pack("count", step)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackCount is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x3b3546c8.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function count(uint256 step) returns()
func (counter *Counter) TryPackCount(step *big.Int) ([]byte, error) {
	return counter.abi.Pack("count", step)
}

// PackRefuse is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x62c69b80.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function refuse() pure returns()
func (counter *Counter) PackRefuse() []byte {
	enc, err := counter.abi.Pack("refuse")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackRefuse is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x62c69b80.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function refuse() pure returns()
func (counter *Counter) TryPackRefuse() ([]byte, error) {
	return counter.abi.Pack("refuse")
}

// PackTotal is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x2ddbd13a.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function total() view returns(uint256)
func (counter *Counter) PackTotal() []byte {
	enc, err := counter.abi.Pack("total")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackTotal is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x2ddbd13a.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function total() view returns(uint256)
func (counter *Counter) TryPackTotal() ([]byte, error) {
	return counter.abi.Pack("total")
}

// UnpackTotal is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x2ddbd13a.
//
// Solidity: function total() view returns(uint256)
func (counter *Counter) UnpackTotal(data []byte) (*big.Int, error) {
	out, err := counter.abi.Unpack("total", data)
	if err != nil {
		return new(big.Int), err
	}
	out0 := abi.ConvertType(out[0], new(big.Int)).(*big.Int)
	return out0, nil
}

// CounterCounted represents a Counted event raised by the Counter contract.
type CounterCounted struct {
	Who   common.Address
	Step  *big.Int
	Total *big.Int
	Raw   *types.Log // Blockchain specific contextual infos
}

const CounterCountedEventName = "Counted"

// ContractEventName returns the user-defined event name.
func (CounterCounted) ContractEventName() string {
	return CounterCountedEventName
}

// UnpackCountedEvent is the Go binding that unpacks the event data emitted
// by contract.
//
// Solidity: event Counted(address indexed who, uint256 step, uint256 total)
func (counter *Counter) UnpackCountedEvent(log *types.Log) (*CounterCounted, error) {
	event := "Counted"
	if len(log.Topics) == 0 {
		return nil, bind.ErrNoEventSignature
	}
	if log.Topics[0] != counter.abi.Events[event].ID {
		return nil, bind.ErrEventSignatureMismatch
	}
	out := new(CounterCounted)
	if len(log.Data) > 0 {
		if err := counter.abi.UnpackIntoInterface(out, event, log.Data); err != nil {
			return nil, err
		}
	}
	var indexed abi.Arguments
	for _, arg := range counter.abi.Events[event].Inputs {
		if arg.Indexed {
			indexed = append(indexed, arg)
		}
	}
	if err := abi.ParseTopics(out, indexed, log.Topics[1:]); err != nil {
		return nil, err
	}
	out.Raw = log
	return out, nil
}

// UnpackError attempts to decode the provided error data using user-defined
// error definitions.
func (counter *Counter) UnpackError(raw []byte) (any, error) {
	if bytes.Equal(raw[:4], counter.abi.Errors["TooFar"].ID.Bytes()[:4]) {
		return counter.UnpackTooFarError(raw[4:])
	}
	return nil, errors.New("Unknown error")
}

// CounterTooFar represents a TooFar error raised by the Counter contract.
type CounterTooFar struct {
	Asked   *big.Int
	Allowed *big.Int
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error TooFar(uint256 asked, uint256 allowed)
func CounterTooFarErrorID() common.Hash {
	return common.HexToHash("0xe3dbd75babb0d696228d7bcf36149b49a9e11c7db0586e60eb9edd5ef1f72c00")
}

// UnpackTooFarError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error TooFar(uint256 asked, uint256 allowed)
func (counter *Counter) UnpackTooFarError(raw []byte) (*CounterTooFar, error) {
	out := new(CounterTooFar)
	if err := counter.abi.UnpackIntoInterface(out, "TooFar", raw); err != nil {
		return nil, err
	}
	return out, nil
}
