package redis

import (
	"encoding/json"
	"time"

	"github.com/bomzrpc/rpcpool"
)

// What is read from a server may be written by anybody who reaches it: it is bounded, and
// whatever isn't a good fact is dropped.
const (
	maxEntry = 256 << 10 // bytes
	maxFacts = 256       // of an entry: as many as a pool publishes at once
)

// wireFact is a fact as it stands in an entry, with times in milliseconds.
type wireFact struct {
	Kind   string `json:"kind"`
	From   string `json:"from,omitempty"`
	Chain  string `json:"chain,omitempty"`
	ID     string `json:"id"`
	Label  string `json:"label,omitempty"`
	Method string `json:"method,omitempty"`
	Head   uint64 `json:"head,omitempty"`
	For    int64  `json:"for_ms,omitempty"`
	Age    int64  `json:"age_ms,omitempty"`
}

func encode(facts []rpcpool.Fact) string {
	wire := make([]wireFact, len(facts))
	for i := range facts {
		f := &facts[i]
		wire[i] = wireFact{
			Kind: string(f.Kind), From: f.From, Chain: f.Chain, ID: f.ID, Label: f.Label, Method: f.Method, Head: f.Head,
			For: f.For.Milliseconds(), Age: f.Age.Milliseconds(),
		}
	}
	text, err := json.Marshal(wire)
	if err != nil { // of texts and numbers there is none
		return ""
	}
	return string(text)
}

// decode gives the good facts of an entry that was added so long ago, as far as they still
// hold. Times are cut to what any fact may have, so that none is too large to count with.
func decode(text string, kept time.Duration) (facts []rpcpool.Fact) {
	var wire [maxFacts]wireFact // as an array, so that nothing is kept of elements beyond; those that lack aren't valid
	if len(text) > maxEntry || json.Unmarshal([]byte(text), &wire) != nil {
		return nil
	}
	kept = min(max(kept, 0), longest)
	for i := range wire {
		w := &wire[i]
		f := rpcpool.Fact{
			Kind: rpcpool.FactKind(w.Kind), From: w.From, Chain: w.Chain, ID: w.ID, Label: w.Label, Method: w.Method, Head: w.Head,
			For: millis(w.For) - kept, Age: millis(w.Age) + kept,
		}
		if f.Kind == rpcpool.FactClear {
			f.For = 0
		}
		if w.Age >= 0 && f.Valid() {
			facts = append(facts, f)
		}
	}
	return facts
}

func millis(n int64) time.Duration {
	return time.Duration(min(max(n, 0), longest.Milliseconds())) * time.Millisecond
}
