package rpcpool

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// recordedCase is an answer and its verdict. testdata/corpus has those of nodes
// and providers; testdata/verdicts/more.jsonl those that came with further
// wordings, some of them made up after the ones that were seen.
type recordedCase struct {
	ID        string          `json:"id"`
	Method    string          `json:"method"`
	HTTP      int             `json:"http"`
	Code      *int            `json:"code"`
	Message   string          `json:"message"`
	Data      json.RawMessage `json:"data"`
	Body      *string         `json:"body"`
	Verdict   string          `json:"verdict"`
	HintSpan  uint64          `json:"hint_span"`
	HintRange []uint64        `json:"hint_range"`
	Contested bool            `json:"contested"`
}

func readLines[T any](t testing.TB, path string) (all []T) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var one T
		require.NoError(t, json.Unmarshal(lines.Bytes(), &one), lines.Text())
		all = append(all, one)
	}
	require.NoError(t, lines.Err())
	return all
}

func recordedCases(t testing.TB) []recordedCase {
	t.Helper()
	return append(readLines[recordedCase](t, "testdata/corpus/errors.jsonl"), readLines[recordedCase](t, "testdata/verdicts/more.jsonl")...)
}

// rpcError gives the answer's JSON-RPC error, where it is one.
func (k *recordedCase) rpcError() (*RPCError, bool) {
	if k.Code != nil {
		return &RPCError{Code: *k.Code, Message: k.Message, Data: k.Data}, true
	}
	e, ok := readErrorBody(k.body())
	return &e, ok
}

func (k *recordedCase) body() []byte {
	switch {
	case k.Body != nil:
		return []byte(*k.Body)
	case k.Code == nil:
		return []byte(k.Message)
	}
	e := map[string]any{"code": *k.Code, "message": k.Message}
	if len(k.Data) > 0 {
		e["data"] = k.Data
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "error": e})
	if err != nil {
		panic(err)
	}
	return body
}

// classify judges the answer as the engine does.
func (k *recordedCase) classify(c *classifier) judgement {
	if e, ok := k.rpcError(); ok && k.HTTP < 300 {
		return c.rpcError("eip155:1", k.Method, e)
	}
	j, _ := c.status("eip155:1", k.Method, k.HTTP, k.body())
	return j
}

// label is a judgement in the words of the records.
func (j *judgement) label() string {
	if j.sentOK {
		return "sent_ok"
	}
	return string(j.verdict)
}

func builtin(t testing.TB) *classifier {
	t.Helper()
	c, err := newClassifier(nil)
	require.NoError(t, err)
	return c
}

// Every recorded answer that nobody contests gets its verdict (rule A6.6).
func TestClassifyRecordedAnswers(t *testing.T) {
	c := builtin(t)
	right, total := 0, 0
	for _, k := range recordedCases(t) {
		if k.Contested {
			continue
		}
		total++
		t.Run(k.ID, func(t *testing.T) {
			j := k.classify(c)
			if assert.Equal(t, k.Verdict, j.label(), "%s is decided by row %q: %s %s", k.ID, j.rule, k.Message, k.Data) {
				right++
			}
		})
	}
	t.Logf("%d of %d recorded answers got their verdict", right, total)
}

// The span and the range that a refusal names are read out, contested or not, and
// where it names none, none is made up of its other numbers (rule A6.6).
func TestClassifyReadsOutHints(t *testing.T) {
	c := builtin(t)
	for _, k := range recordedCases(t) {
		j := k.classify(c)
		if j.verdict != VerdictRange {
			assert.Nil(t, j.hints, k.ID)
			continue
		}
		t.Run(k.ID, func(t *testing.T) {
			assert.Equal(t, k.HintSpan, j.hints.span, "span: %s %s", k.Message, k.Data)
			assert.Equal(t, len(k.HintRange) == 2, j.hints.hasRange, "range: %s %s", k.Message, k.Data)
			if len(k.HintRange) == 2 {
				assert.Equal(t, k.HintRange[0], j.hints.from)
				assert.Equal(t, k.HintRange[1], j.hints.to)
			}
		})
	}
}

// contestedCase is our decision on an answer that careful engineers judge
// differently.
type contestedCase struct {
	ID       string `json:"id"`
	Recorded string `json:"recorded"`
	Decided  string `json:"decided"`
	Why      string `json:"why"`
}

const contestedFile = "testdata/verdicts/contested.jsonl"

// Every contested answer has a decision with a reason, and that is what it gets.
func TestClassifyDecidesContestedAnswers(t *testing.T) {
	c := builtin(t)
	decisions := map[string]contestedCase{}
	for _, d := range readLines[contestedCase](t, contestedFile) {
		decisions[d.ID] = d
	}
	contested := 0
	for _, k := range recordedCases(t) {
		if !k.Contested {
			continue
		}
		contested++
		t.Run(k.ID, func(t *testing.T) {
			d, ok := decisions[k.ID]
			require.True(t, ok, "decide it in %s", contestedFile)
			assert.NotEmpty(t, d.Why)
			assert.Equal(t, k.Verdict, d.Recorded)
			j := k.classify(c)
			assert.Equal(t, d.Decided, j.label(), "decided by row %q", j.rule)
		})
	}
	assert.Len(t, decisions, contested, "%s decides on answers that aren't recorded", contestedFile)
}
