package rpcpool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/bomzrpc/rpcpool/internal/redact"
)

// StaticDirectory is a [Directory] of lists that you give, for those who have no
// pool service: in code ([NewStaticDirectory]), or in a JSON file of the pool's own
// form ([ReadStaticDirectory]). docs/DIRECTORY.md has the form. It is safe for
// concurrent use, and several pools may share one.
//
// A chain is found by its key ("eip155:8453"), where the key begins with eip155: by
// the chain id alone ("8453"), and by its aliases.
//
// What isn't said of an RPC's capabilities is assumed: SendTx true, Logs 1000,
// Archive none. A list of one's own would be of little use if every call had to be
// allowed first; what an RPC can't do it refuses, and the next one is asked.
//
// No printed or JSON form of it shows a URL.
type StaticDirectory struct {
	// OnReport gets each complaint about an RPC (rule A8), one at a time from each
	// pool, after the call that it is about. It should be quick, for others wait
	// behind it. Set it before the directory is used. Default: complaints go nowhere.
	OnReport func(Report)

	s *staticState
}

// staticState is a StaticDirectory.
type staticState struct {
	file listFile // none for lists of code and of bytes

	mu      sync.Mutex // protects what follows
	lists   *staticLists
	aliases map[string]string // alias → reference, given in code
	text    []byte            // what the file had in it when it was last read
	broken  error             // why that can't be used; nil where lists are what it says
}

// NewStaticDirectory makes a directory of lists, best RPC first in each. What is nil
// in an RPC's Caps counts as not said, see [StaticDirectory]. A Key of digits alone is
// a chain id: "8453" is "eip155:8453". The lists are copied.
//
// Everything is checked: every list has a Key that no other has, and RPCs; every
// URL is http(s) with a host and stands once in its list. The error is a *ConfigError
// that names the entry and shows no URL's secret.
func NewStaticDirectory(lists ...List) (*StaticDirectory, error) {
	if len(lists) == 0 {
		return nil, &ConfigError{"lists", "none given; give a List for each chain"}
	}
	all := &staticLists{names: map[string]int{}}
	for i, list := range lists {
		field := fmt.Sprintf("lists[%d]", i)
		list, err := checkedList(list, field)
		if err != nil {
			return nil, err
		}
		if taken, other := all.add(list); taken {
			return nil, &ConfigError{field + ".Key", list.Key + " is the key of lists[" + strconv.Itoa(other) + "] too; put all RPCs of a chain into one list"}
		}
	}
	return &StaticDirectory{s: &staticState{lists: all}}, nil
}

// checkedList gives a copy of a list from code, with what it doesn't say of
// capabilities filled in.
func checkedList(list List, field string) (List, error) {
	key, fault := chainKeyOf(list.Key)
	if fault != "" {
		return list, &ConfigError{field + ".Key", fault}
	}
	if len(list.RPCs) == 0 {
		return list, &ConfigError{field + ".RPCs", "empty; name at least one RPC"}
	}
	list = copyList(List{Key: key, RPCs: list.RPCs})
	seen := map[string]int{}
	for i := range list.RPCs {
		rpc := &list.RPCs[i]
		field := fmt.Sprintf("%s.RPCs[%d].URL", field, i)
		same, fault := checkURL(rpc.URL)
		if fault != "" {
			return list, &ConfigError{field, fault}
		}
		if other, double := seen[same]; double {
			return list, &ConfigError{field, redact.URL(rpc.URL) + " is RPCs[" + strconv.Itoa(other) + "] already"}
		}
		seen[same] = i
		rpc.Caps = rpc.Caps.or(assumedCaps())
	}
	return list, nil
}

// Alias lets a chain be found by one more name. ref is its key, chain id or another
// alias. The error is a *ConfigError: the name is taken, or there is no such chain.
//
// To a [Pool] each name of a chain is a handle of its own, with cooldowns of its own
// (rule A4.6): write a chain in one way throughout a program.
func (d *StaticDirectory) Alias(name, ref string) error {
	if d == nil || d.s == nil {
		return &ConfigError{"ref", notMade}
	}
	if fault := aliasFault(name); fault != "" {
		return &ConfigError{"name", fault}
	}
	s := d.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if key := s.keyOf(name); key != "" {
		return &ConfigError{"name", "it is a name of " + key + " already"}
	}
	key := s.keyOf(ref)
	if key == "" {
		return &ConfigError{"ref", "no such chain; " + s.lists.offer()}
	}
	if s.aliases == nil {
		s.aliases = map[string]string{}
	}
	s.aliases[name] = key
	return nil
}

// keyOf gives the key of the chain that a reference stands for; "" for none. The
// caller holds mu.
func (s *staticState) keyOf(ref string) string {
	if i, ok := s.lists.names[ref]; ok {
		return s.lists.lists[i].Key
	}
	if i, ok := s.lists.names[s.aliases[ref]]; ok {
		return s.lists.lists[i].Key
	}
	return ""
}

// notMade is what a directory says that no constructor made.
const notMade = "the StaticDirectory has no lists: make it by NewStaticDirectory or ReadStaticDirectory, and look at their error"

// RPCs gives a copy of a chain's list. A chain that the directory doesn't have is a
// *PoolAPIError with status 404: a refusal, which no cached list hides (rule A2.4).
//
// A directory of a file reads it again, so that an edit counts when a [Pool] next
// refreshes its lists ([Config.RefreshInterval]). Where the edit can't be used, the
// lists read before stay, and RPCs gives the chain's together with the error, a
// *ListFileError: a Pool logs it and keeps the list that it has.
func (d *StaticDirectory) RPCs(ctx context.Context, ref string) (*List, error) {
	if d == nil || d.s == nil {
		return nil, &PoolAPIError{StatusCode: http.StatusNotFound, Chain: ref, Reason: notMade}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := d.s
	text, unread := s.file.again()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file.rereadable {
		s.take(text, unread)
	}
	key := s.keyOf(ref)
	switch {
	case key != "":
		list := copyList(s.lists.lists[s.lists.names[key]])
		return &list, s.broken
	case s.broken != nil:
		return nil, s.broken // the chain may be what was added
	}
	return nil, &PoolAPIError{StatusCode: http.StatusNotFound, Chain: ref, Reason: s.file.name() + " has no such chain; " + s.lists.offer()}
}

// take makes the lists those of the file as it is now, if it can be used. The
// caller holds mu.
func (s *staticState) take(text []byte, unread error) {
	if unread != nil {
		s.text, s.broken = nil, unread
		return
	}
	if s.text != nil && bytes.Equal(text, s.text) {
		return
	}
	lists, err := s.file.parse(text)
	s.text, s.broken = text, err
	if err == nil {
		s.lists = lists
	}
}

// Report hands a complaint to OnReport. It never fails.
func (d *StaticDirectory) Report(_ context.Context, report Report) error {
	if d != nil && d.OnReport != nil {
		d.OnReport(report)
	}
	return nil
}

// Chains gives the keys of the chains, in the order in which they were given. A
// directory of a file gives those that it read last; Chains reads nothing.
func (d *StaticDirectory) Chains() []string {
	if d == nil || d.s == nil {
		return nil
	}
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	return d.s.lists.keys()
}

// String gives the chains and how many RPCs each has.
func (d StaticDirectory) String() string {
	shown := d.shown()
	var chains []string
	for _, chain := range shown.Chains {
		chains = append(chains, fmt.Sprintf("%s: %d RPCs", chain.Key, chain.RPCs))
	}
	if shown.File != "" {
		chains = append([]string{shown.File}, chains...)
	}
	return "rpcpool.StaticDirectory(" + strings.Join(chains, ", ") + ")"
}

// Format prints String under every verb, so that none reaches a URL.
func (d StaticDirectory) Format(s fmt.State, verb rune) { formatText(s, verb, d.String()) }

// MarshalJSON gives the file, the chains and how many RPCs each has.
func (d StaticDirectory) MarshalJSON() ([]byte, error) { return json.Marshal(d.shown()) }

type shownDirectory struct {
	File   string       `json:"file,omitempty"`
	Chains []shownChain `json:"chains"`
}

type shownChain struct {
	Key  string `json:"key"`
	RPCs int    `json:"rpcs"`
}

func (d StaticDirectory) shown() shownDirectory {
	shown := shownDirectory{Chains: []shownChain{}}
	if d.s == nil {
		return shown
	}
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	shown.File = d.s.file.given
	for i := range d.s.lists.lists {
		list := &d.s.lists.lists[i]
		shown.Chains = append(shown.Chains, shownChain{list.Key, len(list.RPCs)})
	}
	return shown
}

// staticLists are lists and the names that they are found by. Once made they don't
// change.
type staticLists struct {
	lists []List
	names map[string]int // key, chain id or alias → index in lists
}

// add adds a list under its key and chain id. It tells where one of them is taken,
// and by which list.
func (s *staticLists) add(list List) (taken bool, by int) {
	names := []string{list.Key}
	if id, ok := strings.CutPrefix(list.Key, evmNamespace); ok {
		names = append(names, id)
	}
	for _, name := range names {
		if by, taken = s.names[name]; taken {
			return true, by
		}
	}
	for _, name := range names {
		s.names[name] = len(s.lists)
	}
	s.lists = append(s.lists, list)
	return false, 0
}

func (s *staticLists) keys() []string {
	keys := make([]string, len(s.lists))
	for i := range s.lists {
		keys[i] = s.lists[i].Key
	}
	return keys
}

// offer says which chains there are.
func (s *staticLists) offer() string {
	const most = 20
	keys := s.keys()
	if len(keys) > most {
		return fmt.Sprintf("it has %s and %d more", strings.Join(keys[:most], ", "), len(keys)-most)
	}
	return "it has " + strings.Join(keys, ", ")
}

// copyList copies a list so far that nothing of it is shared.
func copyList(list List) List {
	list.RPCs = slices.Clone(list.RPCs)
	for i := range list.RPCs {
		caps := &list.RPCs[i].Caps
		*caps = Caps{SendTx: copied(caps.SendTx), Logs: copied(caps.Logs), Archive: copied(caps.Archive)}
	}
	return list
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}
