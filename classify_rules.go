package rpcpool

// ruleStep is where a row stands in the order of rule A6.1.
type ruleStep uint8

const (
	stepKnown       ruleStep = iota // the transaction is known already (rule A6.3)
	stepPool                        // the node can't take a transaction now
	stepHalt                        // reverts and other ends of a contract's run
	stepNoState                     // the node lacks the block or state
	stepRange                       // a log query is too large
	stepUnsupported                 // the node doesn't serve the method
	stepTx                          // the transaction's own fault
	stepRequest                     // the request's own fault, in words that a node at fault might use
	stepNode                        // the node is at fault
	stepParams                      // the request's own fault
	stepCode                        // the code, where no words decide
)

// stepOrders are the orders of rule A6.1: for all methods, and for raw sends.
var stepOrders = [2][]ruleStep{
	{stepHalt, stepNoState, stepRange, stepUnsupported, stepTx, stepRequest, stepNode, stepParams, stepCode},
	{stepKnown, stepPool, stepTx, stepHalt, stepNoState, stepRange, stepUnsupported, stepRequest, stepNode, stepParams, stepCode},
}

// section is a step's rows and what they have in common.
type section struct {
	step    ruleStep
	title   string
	about   string
	verdict Verdict
	wins    bool     // over the HTTP status (rule A6.4)
	unless  []string // wordings that rule out all rows
	rows    []row
}

// row is a rule of the table: who says what, and what it means. A new provider's
// wording is a string more in say; see wording for how it is written.
type row struct {
	name    string
	on      class    // the methods it is for; 0: all
	not     class    // the methods it isn't for
	codes   []int    // the JSON-RPC codes it is for; none: all
	say     []string // any of these; none: the code alone
	unless  []string // but none of these
	verdict Verdict  // where it isn't the section's
	pruned  bool     // for no_state: dropped, rather than not there yet
	wins    bool     // over the HTTP status, where the section doesn't
	refuses bool     // said before the request is run: what has effects hasn't had them (rule C2)

	who   string  // who says so
	seen  example // one message as it was seen, which this row must decide
	where string  // where it was seen: a public repository or page
}

// example is an error as it was seen.
type example struct {
	method  string
	code    int
	message string
	data    string // JSON
}

func says(method string, code int, message string) example {
	return example{method: method, code: code, message: message}
}

// wordings is the table, a section a step.
var wordings = []section{
	knownSection, poolSection, haltSection, noStateSection, rangeSection, unsupportedSection,
	txSection, requestSection, nodeSection, paramsSection, codeSection,
}
