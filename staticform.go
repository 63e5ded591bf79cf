package rpcpool

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// listReader makes lists of a file's text. It is strict where the pool's answers are
// read leniently (rule A2.1): those are made by a program, this by hand.
type listReader struct {
	text  []byte
	lists *staticLists
	keyAt []int // where the key of each list stands
}

// fail is the error at a place.
func (r *listReader) fail(at int, field, reason string) error {
	line, column := position(r.text, at)
	return &ListFileError{Line: line, Column: column, Field: field, Reason: reason}
}

// wanted is the error for a value of another kind.
func (r *listReader) wanted(v *jsonValue, field, what string) error {
	return r.fail(v.at, field, "found "+v.kind()+", wanted "+what)
}

const (
	chainExample = `{"chain": {"key": "eip155:8453"}, "rpcs": [{"url": "https://rpc.example.org"}]}`
	entryExample = `{"url": "https://rpc.example.org"}`
)

// read reads a chain, a list of them, or an object that has one.
func (r *listReader) read() error {
	root, err := parseJSON(r.text)
	if fault, ok := errors.AsType[*jsonError](err); ok {
		return r.fail(fault.at, "", fault.reason)
	}
	switch root.token {
	case json.Delim('['):
		return r.chains(root, "")
	case json.Delim('{'):
		if !slices.ContainsFunc(root.members, func(m jsonMember) bool { return m.name == "chains" }) {
			return r.chainsOf([]jsonValue{*root}, func(int) string { return "" })
		}
		members, err := r.members(root, "", "chains")
		if err != nil {
			return err
		}
		return r.chains(members["chains"], "chains")
	}
	return r.wanted(root, "", "a chain's list, "+chainExample)
}

func (r *listReader) chains(v *jsonValue, field string) error {
	if v.token != json.Delim('[') {
		return r.wanted(v, field, "a list of chains, ["+chainExample+"]")
	}
	if len(v.items) == 0 {
		return r.fail(v.at, field, "no chain in it; wanted "+chainExample)
	}
	return r.chainsOf(v.items, func(i int) string { return field + "[" + strconv.Itoa(i) + "]" })
}

// chainsOf reads the chains, and then their aliases: a key is never taken by another
// chain's alias, wherever that stands.
func (r *listReader) chainsOf(values []jsonValue, field func(int) string) error {
	heads := make([]chainHead, len(values))
	for i := range values {
		var err error
		if heads[i], err = r.chain(&values[i], field(i)); err != nil {
			return err
		}
	}
	for i, head := range heads {
		for _, alias := range head.aliases {
			if err := r.alias(alias, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// chainHead is what stands under "chain".
type chainHead struct {
	key     string
	keyAt   int
	field   string // the key's
	aliases []aliasEntry
}

type aliasEntry struct {
	value *jsonValue
	field string
}

// chain reads one chain and adds its list.
func (r *listReader) chain(v *jsonValue, field string) (head chainHead, err error) {
	members, err := r.object(v, field, chainExample, "chain", "caps", "rpcs", poolsOwn)
	if err != nil {
		return head, err
	}
	for _, name := range []string{"chain", "rpcs"} {
		if members[name] == nil {
			return head, r.fail(v.at, field, `"`+name+`" is missing; wanted `+chainExample)
		}
	}
	if head, err = r.head(members["chain"], join(field, "chain")); err != nil {
		return head, err
	}
	base := assumedCaps()
	if caps := members["caps"]; caps != nil {
		if base, err = r.caps(caps, join(field, "caps"), base); err != nil {
			return head, err
		}
	}
	list := List{Key: head.key}
	if list.RPCs, err = r.rpcs(members["rpcs"], join(field, "rpcs"), base); err != nil {
		return head, err
	}
	if taken, by := r.lists.add(list); taken {
		line, _ := position(r.text, r.keyAt[by])
		return head, r.fail(head.keyAt, head.field, fmt.Sprintf("%s stands on line %d already; put all RPCs of a chain into one list", head.key, line))
	}
	r.keyAt = append(r.keyAt, head.keyAt)
	return head, nil
}

func (r *listReader) head(v *jsonValue, field string) (head chainHead, err error) {
	members, err := r.object(v, field, `{"key": "eip155:8453"}`, "key", "aliases")
	if err != nil {
		return head, err
	}
	key := members["key"]
	if key == nil {
		return head, r.fail(v.at, field, `"key" is missing; wanted {"key": "eip155:8453"}`)
	}
	head.field, head.keyAt = join(field, "key"), key.at
	given, ok := key.token.(string)
	if !ok {
		return head, r.wanted(key, head.field, `the chain's key, such as "eip155:8453"`)
	}
	var fault string
	if head.key, fault = chainKeyOf(given); fault != "" {
		return head, r.fail(key.at, head.field, fault)
	}
	aliases := members["aliases"]
	if aliases == nil {
		return head, nil
	}
	const example = `a list of names, such as ["base"]`
	if aliases.token != json.Delim('[') {
		return head, r.wanted(aliases, join(field, "aliases"), example)
	}
	for i := range aliases.items {
		entry := aliasEntry{&aliases.items[i], fmt.Sprintf("%s[%d]", join(field, "aliases"), i)}
		if _, ok := entry.value.token.(string); !ok {
			return head, r.wanted(entry.value, entry.field, `a name, such as "base"`)
		}
		head.aliases = append(head.aliases, entry)
	}
	return head, nil
}

// alias adds one more name of a list.
func (r *listReader) alias(entry aliasEntry, list int) error {
	name, _ := entry.value.token.(string)
	if fault := aliasFault(name); fault != "" {
		return r.fail(entry.value.at, entry.field, fault)
	}
	if by, taken := r.lists.names[name]; taken {
		return r.fail(entry.value.at, entry.field, "this is a name of "+r.lists.lists[by].Key+" already")
	}
	r.lists.names[name] = list
	return nil
}

func (r *listReader) rpcs(v *jsonValue, field string, base Caps) ([]RPC, error) {
	if v.token != json.Delim('[') {
		return nil, r.wanted(v, field, "a list of RPCs, ["+entryExample+"]")
	}
	if len(v.items) == 0 {
		return nil, r.fail(v.at, field, "no RPC in it; wanted "+entryExample)
	}
	rpcs := make([]RPC, len(v.items))
	urlAt := map[string]int{}
	for i := range v.items {
		field := fmt.Sprintf("%s[%d]", field, i)
		members, err := r.object(&v.items[i], field, entryExample, "url", "score", "height", "caps")
		if err != nil {
			return nil, err
		}
		if members["url"] == nil {
			return nil, r.fail(v.items[i].at, field, `"url" is missing; wanted `+entryExample)
		}
		if rpcs[i], err = r.rpc(members, field, base); err != nil {
			return nil, err
		}
		at := members["url"].at
		same, _ := checkURL(rpcs[i].URL)
		if other, double := urlAt[same]; double {
			line, _ := position(r.text, other)
			return nil, r.fail(at, field+".url", fmt.Sprintf("this URL stands on line %d already", line))
		}
		urlAt[same] = at
	}
	return rpcs, nil
}

func (r *listReader) rpc(members map[string]*jsonValue, field string, base Caps) (rpc RPC, err error) {
	address, ok := members["url"].token.(string)
	if !ok {
		return rpc, r.wanted(members["url"], field+".url", `a URL, such as "https://rpc.example.org"`)
	}
	if _, fault := checkURL(address); fault != "" {
		return rpc, r.fail(members["url"].at, field+".url", fault)
	}
	rpc.URL = address
	if score := members["score"]; score != nil && score.token != nil {
		number, _ := score.token.(json.Number)
		if rpc.Score, err = strconv.ParseFloat(number.String(), 64); err != nil {
			return rpc, r.wanted(score, field+".score", "a number such as 97.5, or null")
		}
	}
	if height := members["height"]; height != nil && height.token != nil {
		if rpc.Height, ok = height.uint(); !ok {
			return rpc, r.wanted(height, field+".height", "the number of a block, or null")
		}
	}
	if caps := members["caps"]; caps != nil {
		base, err = r.caps(caps, field+".caps", base)
	}
	rpc.Caps = base
	return rpc, err
}

// caps reads capabilities: what isn't said there is as in base, and null is unknown,
// which nothing fills in (rule A3.1).
func (r *listReader) caps(v *jsonValue, field string, base Caps) (Caps, error) {
	if v.token == nil {
		return Caps{}, nil
	}
	members, err := r.object(v, field, `{"send_tx": true, "logs": 1000, "archive": "none"}, or parts of it`, "send_tx", "logs", "archive")
	if err != nil {
		return base, err
	}
	if send := members["send_tx"]; send != nil {
		base.SendTx = nil
		if value, ok := send.token.(bool); ok {
			base.SendTx = &value
		} else if send.token != nil {
			return base, r.wanted(send, field+".send_tx", "true, false or null")
		}
	}
	if logs := members["logs"]; logs != nil {
		base.Logs = nil
		if value, ok := logs.uint(); ok && (value == 0 || value >= narrowLogs) {
			base.Logs = &value
		} else if logs.token != nil {
			return base, r.wanted(logs, field+".logs", "the blocks that an eth_getLogs may span: 0 (none), 1000, 10000 or null")
		}
	}
	if archive := members["archive"]; archive != nil {
		base.Archive = nil
		word, _ := archive.token.(string)
		if value, ok := archiveLevels[word]; ok {
			base.Archive = &value
		} else if archive.token != nil {
			return base, r.wanted(archive, field+".archive", `"none", "recent", "full" or null`+meant(word, "none", "recent", "full"))
		}
	}
	return base, nil
}

// uint gives a value that is a whole number from 0 on.
func (v *jsonValue) uint() (uint64, bool) {
	number, ok := v.token.(json.Number)
	if !ok {
		return 0, false
	}
	value, err := strconv.ParseUint(number.String(), 10, 64)
	return value, err == nil
}

// join gives the way to a field of an object.
func join(field, name string) string {
	if field == "" {
		return name
	}
	return field + "." + name
}
