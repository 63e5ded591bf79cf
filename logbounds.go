package rpcpool

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"
)

// logBoundary is one end of a log query: a number, or a tag that stands for one.
type logBoundary struct {
	number uint64
	tag    string // of a block whose number has to be asked for; empty for a number
}

// parseBound reads a bound in any of the forms that LogFilter names.
func parseBound(field string, bound any) (logBoundary, error) {
	switch value := bound.(type) {
	case nil:
		return logBoundary{tag: tagLatest}, nil
	case string:
		return parseBoundText(field, value)
	case json.Number:
		return parseBoundText(field, value.String())
	case *big.Int:
		if value == nil {
			return logBoundary{tag: tagLatest}, nil
		}
		if !value.IsUint64() {
			return logBoundary{}, badBound(field, value.String())
		}
		return logBoundary{number: value.Uint64()}, nil
	}
	return parseBoundNumber(field, bound)
}

func parseBoundText(field, text string) (logBoundary, error) {
	switch text {
	case tagLatest, tagPending: // there are no logs of a block that isn't there
		return logBoundary{tag: tagLatest}, nil
	case tagSafe, tagFinalized:
		return logBoundary{tag: text}, nil
	case tagEarliest:
		return logBoundary{}, nil
	}
	if digits, hex := strings.CutPrefix(text, "0x"); hex {
		number, err := strconv.ParseUint(digits, 16, 64)
		if err != nil {
			return logBoundary{}, badBound(field, strconv.Quote(text))
		}
		return logBoundary{number: number}, nil
	}
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return logBoundary{}, badBound(field, strconv.Quote(text))
	}
	return logBoundary{number: number}, nil
}

// parseBoundNumber reads the integer types, and floats that are whole numbers, as
// decoded JSON has them.
func parseBoundNumber(field string, bound any) (logBoundary, error) {
	switch value := reflect.ValueOf(bound); {
	case value.CanUint():
		return logBoundary{number: value.Uint()}, nil
	case value.CanInt() && value.Int() >= 0:
		return logBoundary{number: uint64(value.Int())}, nil
	case value.CanFloat():
		if f := value.Float(); f >= 0 && f < 1<<53 && f == math.Trunc(f) {
			return logBoundary{number: uint64(f)}, nil
		}
	}
	return logBoundary{}, badBound(field, fmt.Sprint(bound))
}

func badBound(field, shown string) error {
	return badFilter(fmt.Sprintf(`%s is %s; a block number, "earliest", "latest", "safe" or "finalized" is wanted`, field, clip(shown, 80)))
}
