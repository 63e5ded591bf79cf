package rpcpool

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/bomzrpc/rpcpool/internal/redact"
)

// Directory is where a [Pool] gets the lists of RPCs from and sends its reports
// to: the pool API by default, or the user's own.
//
// Its methods are called from several goroutines at once, each with 10 s; lists
// are asked for when a call needs one, never by a timer.
type Directory interface {
	// RPCs lists the RPCs of a chain, best first. ref is the reference that the
	// user gave to [Pool.Chain]. An error that is a *PoolAPIError with status
	// 400, 401 or 404 is a refusal (an unknown chain, a wrong key); every other
	// error counts as an outage, which the cache helps over (rule A2.4). A list
	// together with an error is one from before, and better than the cache's.
	RPCs(ctx context.Context, ref string) (*List, error)
	// Report takes a complaint about an RPC. Its error is only logged, at debug
	// level: reports are best effort (rule A8).
	Report(ctx context.Context, report Report) error
}

// List is what a [Directory] says about a chain.
type List struct {
	// Key is the chain's canonical name, such as "eip155:8453". Required:
	// reports carry it.
	Key string
	// RPCs are the chain's RPCs, best first.
	RPCs []RPC
}

// RPC is one entry of a [List]. Entries whose URL isn't http(s) with a host, or
// that stand twice, are dropped (rule A2.1).
type RPC struct {
	// URL is the whole URL. It often holds a key, so no printed or JSON form of
	// an RPC shows more of it than scheme, host and port.
	URL string
	// Score is the pool's measure of reliability. The order of the list is what
	// counts; the score is for people.
	Score float64
	// Height is the block that the RPC was seen at; 0 where unknown.
	Height uint64
	// Caps is what the RPC can do.
	Caps Caps
}

// Format prints the RPC with its URL masked, under every verb.
func (r RPC) Format(s fmt.State, verb rune) {
	formatText(s, verb, fmt.Sprintf("RPC(%s, height %d)", redact.URL(r.URL), r.Height))
}

// MarshalJSON gives the RPC with its URL masked.
func (r RPC) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		URL    string  `json:"url"`
		Score  float64 `json:"score"`
		Height uint64  `json:"height"`
	}{redact.URL(r.URL), r.Score, r.Height})
}

// Report is a complaint about an RPC (rule A8).
type Report struct {
	// Chain is the key of the list that the RPC is from.
	Chain string
	// URL is the RPC's whole URL, which the pool knows it by. No printed or JSON
	// form of a Report shows more of it than scheme, host and port.
	URL string
	// Error is "timeout", "http_403", "http_429", "conn" or "rpc_error".
	Error string
	// Detail says what happened, in at most 500 characters, without secrets.
	Detail string
}

// Format prints the report with its URL masked, under every verb.
func (r Report) Format(s fmt.State, verb rune) {
	formatText(s, verb, fmt.Sprintf("Report(%s %s: %s: %s)", r.Chain, redact.URL(r.URL), r.Error, r.Detail))
}

// MarshalJSON gives the report with its URL masked.
func (r Report) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Chain  string `json:"chain"`
		URL    string `json:"url"`
		Error  string `json:"error"`
		Detail string `json:"detail"`
	}{r.Chain, redact.URL(r.URL), r.Error, r.Detail})
}

// listing is the form in which the pool API and the cache file have a list.
type listing struct {
	Chain struct {
		Key string `json:"key"`
	} `json:"chain"`
	RPCs json.RawMessage `json:"rpcs"`
}

// parseListing reads a list in the pool's form. What an entry has too much or in
// an unexpected type does no harm; a list without its key or its rpcs is no list.
func parseListing(body []byte) (*List, error) {
	var raw listing
	if err := json.Unmarshal(body, &raw); err != nil {
		return nil, fmt.Errorf("the answer is no JSON object of the expected form")
	}
	return raw.list()
}

func (raw *listing) list() (*List, error) {
	if raw.Chain.Key == "" {
		return nil, fmt.Errorf("the answer has no chain.key")
	}
	var entries []json.RawMessage
	if json.Unmarshal(raw.RPCs, &entries) != nil || entries == nil {
		return nil, fmt.Errorf("the answer has no list of rpcs")
	}
	list := &List{Key: raw.Chain.Key, RPCs: make([]RPC, 0, len(entries))}
	for _, entry := range entries {
		list.RPCs = append(list.RPCs, parseEntry(entry))
	}
	return list, nil
}

// parseEntry reads one entry as far as it can be read. One without a usable URL
// comes out with an empty one and is dropped with the other bad URLs.
func parseEntry(raw json.RawMessage) RPC {
	var fields struct {
		URL    json.RawMessage `json:"url"`
		Score  json.RawMessage `json:"score"`
		Height json.RawMessage `json:"height"`
		Caps   json.RawMessage `json:"caps"`
	}
	var caps struct {
		SendTx  json.RawMessage `json:"send_tx"`
		Logs    json.RawMessage `json:"logs"`
		Archive json.RawMessage `json:"archive"`
	}
	var rpc RPC
	if json.Unmarshal(raw, &fields) != nil {
		return rpc
	}
	rpc.URL, _ = decode[string](fields.URL)
	rpc.Score, _ = decode[float64](fields.Score)
	rpc.Height, _ = decode[uint64](fields.Height)
	if len(fields.Caps) == 0 || json.Unmarshal(fields.Caps, &caps) != nil {
		return rpc
	}
	if send, ok := decode[bool](caps.SendTx); ok {
		rpc.Caps.SendTx = &send
	}
	if logs, ok := decode[uint64](caps.Logs); ok {
		rpc.Caps.Logs = &logs
	}
	if word, ok := decode[string](caps.Archive); ok {
		if level, known := archiveLevels[word]; known {
			rpc.Caps.Archive = &level
		}
	}
	return rpc
}

var archiveLevels = map[string]Archive{"none": ArchiveNone, "recent": ArchiveRecent, "full": ArchiveFull}

// decode reads a JSON value of type T; null, nothing or another type is not ok.
func decode[T any](raw json.RawMessage) (value T, ok bool) {
	if len(raw) == 0 || string(raw) == "null" {
		return value, false
	}
	return value, json.Unmarshal(raw, &value) == nil
}
