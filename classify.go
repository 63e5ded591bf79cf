package rpcpool

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
)

// judgement is what an answer means.
type judgement struct {
	verdict Verdict // VerdictOK only with sentOK
	report  string  // kind of report where the verdict stands; "" where none is sent
	rule    string  // name of the row that decided; "" where only the status or the default did

	hints   *rangeHints // nil where the message has none
	sentOK  bool        // a raw send answered "already known" (rule A6.3): success, the hash is computed here
	refused bool        // in words that are said before a request is run
	pruned  bool        // no_state because the node has dropped it, rather than beyond its head
}

// rangeHints are what a message says of the range of blocks that it would take.
type rangeHints struct {
	span     uint64 // number of blocks that is allowed; 0: none named
	from, to uint64 // range that is suggested, where hasRange
	hasRange bool
}

// classifier says what error answers mean (rule A6). It has no state: the table of
// wordings is compiled once for the whole program.
type classifier struct {
	rules []Rule
	table *table
}

// newClassifier puts the user's rules before the built-in table.
func newClassifier(rules []Rule) (*classifier, error) {
	for i := range rules {
		if err := rules[i].check(fmt.Sprintf("Rules[%d]", i)); err != nil {
			return nil, err
		}
	}
	rules = slices.Clone(rules)
	for i := range rules {
		rules[i].Methods, rules[i].Chains = slices.Clone(rules[i].Methods), slices.Clone(rules[i].Chains)
	}
	return &classifier{rules: rules, table: builtinTable()}, nil
}

// builtinTable compiles the table at its first use.
var builtinTable = sync.OnceValue(func() *table {
	t, err := compileTable(wordings)
	if err != nil {
		panic("rpcpool: the table of wordings: " + err.Error()) // a test compiles it
	}
	return t
})

// rpcError judges a JSON-RPC error under a 2xx status (rule A6.1).
func (c *classifier) rpcError(chain, method string, e *RPCError) judgement {
	w := wordsOf(method, e.Message, e.Data, e.Code)
	defer w.free()
	if len(c.rules) > 0 {
		answer := ErrorAnswer{Chain: chain, Method: method, Status: 200, Code: e.Code, Message: e.Message, Data: e.Data}
		if j, ok := c.userRule(&answer, w); ok {
			return j
		}
	}
	r := c.table.decide(w, classesOf(method), e.Code)
	if r == nil {
		return judgement{verdict: VerdictCaller}
	}
	return r.judge(w)
}

// class tells what kind of method was called, as far as the table cares.
type class uint16

const (
	rawSends   class = 1 << iota // eth_sendRawTransaction and its kin
	sends                        // whatever hands in a transaction, on any chain; perhaps in Run
	logQueries                   // perhaps in Run
	inRun                        // the method isn't known
	traces                       // tracing and debugging
	minedReads                   // what reads, or traces, all of a mined block
	evm                          // methods of an Ethereum-like node
)

func classesOf(method string) class {
	if method == "" {
		return inRun | logQueries | sends
	}
	var c class
	if isRawSend(method) {
		c |= rawSends
	}
	if isLogQuery(method) {
		c |= logQueries
	}
	for _, k := range methodKinds {
		if strings.HasPrefix(method, k.prefix) {
			c |= k.class
		}
	}
	for _, word := range sendWords {
		if strings.Contains(method, word) {
			c |= sends
		}
	}
	return c
}

var methodKinds = []struct {
	prefix string
	class  class
}{
	{"eth_", evm},
	{"eth_getBlockReceipts", minedReads},
	{"debug_", evm | traces},
	{"debug_traceBlock", minedReads},
	{"trace_", evm | traces},
	{"trace_block", minedReads},
	{"trace_replayBlock", minedReads},
	{"arbtrace_", evm | traces},
	{"ots_", evm | traces},
	{"starknet_trace", minedReads},
}

var sendWords = []string{"send", "Send", "submit", "broadcast", "_add", "execute", "issueTx"}

// rawSendMethods are the methods that hand in a signed Ethereum transaction, whose
// hash can be computed from the bytes.
var rawSendMethods = map[string]bool{
	"eth_sendRawTransaction":            true,
	"eth_sendRawTransactionSync":        true,
	"eth_sendRawTransactionConditional": true,
}

// isRawSend tells whether a method hands in a signed Ethereum transaction.
func isRawSend(method string) bool { return rawSendMethods[method] }

// logQueryMethods are the methods whose filter has a range of blocks that the user
// can make smaller.
var logQueryMethods = map[string]bool{
	"eth_getLogs":          true,
	"eth_newFilter":        true,
	"eth_getFilterLogs":    true,
	"erigon_getLogs":       true,
	"erigon_getLatestLogs": true,
	"cfx_getLogs":          true,
	"klay_getLogs":         true,
	"kaia_getLogs":         true,
}

// isLogQuery tells whether a method asks for the logs of a range of blocks.
func isLogQuery(method string) bool { return logQueryMethods[method] }

// table is the compiled table of wordings.
type table struct {
	*matcher
	rows    []compiledRow
	codes   []uint16 // the rows that go by the code alone
	reverts uint16   // the phrase "revert"
}

type compiledRow struct {
	*row
	section *section
	verdict Verdict
	unless  []uint16 // wordings that rule the row out, its section's included
	rank    [2]int   // place in the order of rule A6.1: for all methods, for raw sends
}

// compileTable compiles the sections in the two orders of rule A6.1.
func compileTable(sections []section) (*table, error) {
	t := &table{matcher: newMatcher()}
	for i := range sections {
		s := &sections[i]
		for k := range s.rows {
			if err := t.addRow(s, &s.rows[k]); err != nil {
				return nil, fmt.Errorf("row %s: %w", s.rows[k].name, err)
			}
		}
	}
	if len(t.nodes) > math.MaxUint16 {
		return nil, fmt.Errorf("more than %d letters", math.MaxUint16)
	}
	var err error
	t.reverts, err = t.phrase("revert")
	return t, err
}

func (t *table) addRow(s *section, r *row) error {
	n := len(t.rows)
	c := compiledRow{row: r, section: s, verdict: s.verdict}
	if r.verdict != "" {
		c.verdict = r.verdict
	}
	for order := range c.rank {
		place := slices.Index(stepOrders[order], s.step)
		if place < 0 {
			place = len(stepOrders[order]) // not in this order: never looked at
		}
		c.rank[order] = place<<16 | n
	}
	for _, text := range r.say {
		if err := t.add(n, text, true); err != nil {
			return err
		}
	}
	for _, text := range slices.Concat(s.unless, r.unless) {
		c.unless = append(c.unless, uint16(len(t.wordings)))
		if err := t.add(n, text, false); err != nil {
			return err
		}
	}
	if len(r.say) == 0 {
		t.codes = append(t.codes, uint16(n))
	}
	t.rows = append(t.rows, c)
	return nil
}

// decide gives the row that says what an error means, or nil.
func (t *table) decide(w *words, c class, code int) *compiledRow {
	t.find(w)
	order, limit := 0, len(w.buf)
	if c&rawSends != 0 {
		order, limit = 1, t.revertAt(w)
	}
	var best *compiledRow
	bestRank := len(stepOrders[order]) << 16
	for _, set := range w.said {
		for _, number := range t.byLast[set] {
			r := &t.rows[t.wordings[number].row]
			if r.rank[order] < bestRank && r.isFor(c, code) && t.saysOf(r, w, number, limit) {
				best, bestRank = r, r.rank[order]
			}
		}
	}
	if best != nil {
		return best
	}
	for _, n := range t.codes {
		if r := &t.rows[n]; r.isFor(c, code) {
			return r
		}
	}
	return nil
}

// revertAt gives where a text begins to tell of a revert: what follows may be the
// words of a contract, which decide nothing.
func (t *table) revertAt(w *words) int {
	for _, h := range w.hits {
		if h.phrase == t.reverts {
			return int(h.start)
		}
	}
	return len(w.buf)
}

// isFor tells whether a row is for this kind of method and this code. In Run, where
// the method isn't known, it may be one of those that the row isn't for; the words
// decide.
func (r *compiledRow) isFor(c class, code int) bool {
	not := r.not
	if c&inRun != 0 {
		not &= inRun
	}
	return (r.on == 0 || c&r.on != 0) && c&not == 0 && (len(r.codes) == 0 || slices.Contains(r.codes, code))
}

// judge makes the judgement of a row that decided.
func (r *compiledRow) judge(w *words) judgement {
	j := judgement{verdict: r.verdict, sentOK: r.verdict == VerdictOK, pruned: r.pruned, refused: r.refuses, rule: r.name}
	switch r.verdict {
	case VerdictRPCFail:
		j.report = reportRPC
	case VerdictRange:
		j.hints = hintsOf(w)
	}
	return j
}

func (t *table) saysOf(r *compiledRow, w *words, number uint16, limit int) bool {
	if r.section.step == stepHalt {
		limit = len(w.buf)
	}
	if !t.says(w, number, limit) {
		return false
	}
	for _, number := range r.unless {
		if t.says(w, number, len(w.buf)) {
			return false
		}
	}
	return true
}

// userRule tries the user's rules.
func (c *classifier) userRule(answer *ErrorAnswer, w *words) (judgement, bool) {
	text := ""
	for i := range c.rules {
		r := &c.rules[i]
		if !r.isFor(answer.Chain, answer.Method) {
			continue
		}
		if r.Pattern != nil {
			if text == "" {
				text = strings.ToLower(string(w.raw))
			}
			if !r.Pattern.MatchString(text) {
				continue
			}
		}
		if r.Match != nil && !r.matches(answer) {
			continue
		}
		return r.judge(answer, w), true
	}
	return judgement{}, false
}
