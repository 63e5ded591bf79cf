package rpcpool

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func capsOf(send bool, logs uint64, archive Archive) Caps {
	return Caps{SendTx: &send, Logs: &logs, Archive: &archive}
}

func testRing(t *testing.T, caps ...Caps) *ring {
	t.Helper()
	list := &List{Key: "eip155:1"}
	for i, c := range caps {
		list.RPCs = append(list.RPCs, RPC{URL: fmt.Sprintf("http://r%d.test/key", i+1), Caps: c})
	}
	r, dropped := newRing(list, nil)
	require.Empty(t, dropped)
	return r
}

func names(endpoints []*endpoint) (hosts []string) {
	for _, e := range endpoints {
		hosts = append(hosts, e.target.Hostname()[:2])
	}
	return hosts
}

// Candidates begin at the cursor and wrap; what is cooling, marked, unfit or out
// for this call is passed over (rule A4.1).
func TestCandidatesWrapFromTheCursorAndPassOver(t *testing.T) {
	full := capsOf(true, 10000, ArchiveFull)
	r := testRing(t, full, full, full, full, Caps{}, full)
	e := r.endpoints
	e[0].markUnsupported("debug_x", at(0))
	e[3].health.record(&failure{at: at(0)})
	w := wanted{shape: &shape{method: "debug_x"}, need: requirement{sendTx: true}, exclude: map[string]bool{e[5].url: true}}

	require.Equal(t, []string{"r3", "r2"}, names(candidates(r, 2, w, at(1))))
	w.method = "debug_y"
	require.Equal(t, []string{"r3", "r1", "r2"}, names(candidates(r, 2, w, at(1))), "the mark is for one method")
	w.method = "debug_x"
	require.Equal(t, []string{"r3", "r4", "r2"}, names(candidates(r, 2, w, at(60))), "the cooldown is over after 60 s")
	require.Equal(t, []string{"r3", "r4", "r1", "r2"}, names(candidates(r, 2, w, at(600))), "the mark is over after 600 s")
	require.Empty(t, candidates(&ring{}, 0, w, at(0)))
}

// For a wide log query those that take wide ranges go first, the order from the
// cursor on kept inside both groups (rule A3).
func TestCandidatesPutWideLogRangesFirst(t *testing.T) {
	narrow, wide := capsOf(true, 1000, ArchiveNone), capsOf(true, 10000, ArchiveNone)
	r := testRing(t, narrow, wide, narrow, wide)
	w := wanted{shape: &shape{}, need: requirement{logs: true, preferWide: true}}
	require.Equal(t, []string{"r4", "r2", "r3", "r1"}, names(candidates(r, 2, w, at(0))))
	w.need.preferWide = false
	require.Equal(t, []string{"r3", "r4", "r1", "r2"}, names(candidates(r, 2, w, at(0))))
}

// What is unknown never satisfies a requirement, and requirements add up (A3.1).
func TestRequirementUnknownNeverFits(t *testing.T) {
	for _, c := range []struct {
		need requirement
		caps Caps
		fits bool
	}{
		{requirement{}, Caps{}, true},
		{requirement{sendTx: true}, Caps{}, false},
		{requirement{sendTx: true}, Caps{SendTx: new(false)}, false},
		{requirement{sendTx: true}, Caps{SendTx: new(true)}, true},
		{requirement{logs: true}, Caps{}, false},
		{requirement{logs: true}, Caps{Logs: new(uint64(999))}, false},
		{requirement{logs: true}, Caps{Logs: new(uint64(1000))}, true},
		{requirement{archive: ArchiveRecent}, Caps{}, false},
		{requirement{archive: ArchiveRecent}, Caps{Archive: new(ArchiveNone)}, false},
		{requirement{archive: ArchiveRecent}, Caps{Archive: new(ArchiveFull)}, true},
		{requirement{archive: ArchiveFull}, Caps{Archive: new(ArchiveRecent)}, false},
		{requirement{logs: true, archive: ArchiveFull}, Caps{Logs: new(uint64(1000))}, false},
	} {
		require.Equal(t, c.fits, c.need.fits(&c.caps), "%+v", c.need)
	}
}

// Only state reads at a block *number* more than 128 under the head need old state;
// tags, hashes and other methods don't (rules A3, A3.1).
func TestRequirementOfOldState(t *testing.T) {
	const head = 2000
	for params, archive := range map[string]Archive{
		`["0xab","0x74f"]`:                    ArchiveRecent, // 1871
		`["0xab","0x750"]`:                    ArchiveNone,   // 1872 = head - 128
		`["0xab","0X74F"]`:                    ArchiveRecent,
		`["0xab","latest"]`:                   ArchiveNone,
		`["0xab","earliest"]`:                 ArchiveNone,
		`["0xab"]`:                            ArchiveNone,
		`["0xab",{"blockNumber":"0x1"}]`:      ArchiveRecent,
		`["0xab",{"blockHash":"0x1"}]`:        ArchiveNone,
		`["0xab","0x` + hash64 + `"]`:         ArchiveNone,
		`["0xab",1]`:                          ArchiveNone,
		`{"a":"0x1"}`:                         ArchiveNone,
		`["0xab","0x"]`:                       ArchiveNone,
		`["0xab",{"blockNumber":7}]`:          ArchiveNone,
		`["0xab","0xffffffffffffffff"]`:       ArchiveNone,
		`["0xab",{"blockNumber":"latest"}]`:   ArchiveNone,
		`["0xab","0x0000000000000000000001"]`: ArchiveRecent,
	} {
		need := needOf("eth_getBalance", []byte(params), ArchiveNone, head)
		require.Equal(t, archive, need.archive, params)
		require.Equal(t, ArchiveNone, needOf("eth_getProof", []byte(params), ArchiveNone, head).archive, params)
		require.Equal(t, ArchiveFull, needOf("eth_getBalance", []byte(params), ArchiveFull, head).archive, params)
	}
	require.Equal(t, ArchiveRecent, needOf("eth_getStorageAt", []byte(`["0xab","0x7ff","0x1"]`), 0, head).archive)
	require.Equal(t, ArchiveNone, needOf("eth_getStorageAt", []byte(`["0xab","0x1","latest"]`), 0, head).archive)
	require.Equal(t, ArchiveNone, needOf("eth_getBalance", []byte(`["0xab","0x1"]`), 0, 0).archive, "no head known")
}

func needOf(method string, params []byte, archive Archive, head uint64) requirement {
	s := shapeOf(method, params)
	return s.need(archive, head)
}

const hash64 = "1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f"

// 0..1000 is 1,001 blocks, and more than 1,000 are wide (rule A3).
func TestRequirementOfWideLogQueries(t *testing.T) {
	for params, wide := range map[string]bool{
		`[{"fromBlock":"0x0","toBlock":"0x3e8"}]`:      true,
		`[{"fromBlock":"0x1","toBlock":"0x3e8"}]`:      false,
		`[{"fromBlock":"0x0","toBlock":"latest"}]`:     true,
		`[{"fromBlock":"0x0"}]`:                        true,
		`[{"fromBlock":"earliest","toBlock":"0x3e8"}]`: true,
		`[{"fromBlock":"0x7c0","toBlock":"latest"}]`:   false,
		`[{}]`: false,
		`[{"fromBlock":"0x0","toBlock":"0x3e8","blockHash":"0x1"}]`: false,
		`[{"fromBlock":"0x3e8","toBlock":"0x0"}]`:                   false,
		`[{"fromBlock":"finalized","toBlock":"0x3e8"}]`:             false,
		`[7]`: false, `[]`: false, `{}`: false,
	} {
		need := needOf("eth_getLogs", []byte(params), ArchiveNone, 2000)
		require.True(t, need.logs)
		require.Equal(t, wide, need.preferWide, params)
	}
	require.False(t, needOf("eth_getLogs", []byte(`[{"fromBlock":"0x0"}]`), 0, 0).preferWide, "no head known")
}

// On a new list endpoints keep their state, those that left are forgotten, and bad
// entries are dropped and named without their secrets (rules A2.1, A2.3).
func TestNewRingKeepsStateOfThoseStillListed(t *testing.T) {
	before, _ := newRing(&List{RPCs: []RPC{{URL: "http://a.test/key-a"}, {URL: "http://b.test/key-b"}}}, nil)
	before.endpoints[1].health.record(&failure{at: at(0)})
	list := &List{Key: "k", RPCs: []RPC{
		{URL: "http://b.test/key-b", Height: 7}, {URL: "http://b.test/key-b"}, {URL: "ftp://x.test/secret-x"}, {URL: ""},
		{URL: "http://:80/secret-y"}, {URL: "http://us er:pw@z.test/secret-z"}, {URL: "http://c.test/key-c", Height: 5},
	}}
	after, dropped := newRing(list, before)
	require.Equal(t, []string{"b.", "c."}, names(after.endpoints))
	require.Same(t, before.endpoints[1], after.endpoints[0])
	require.True(t, after.endpoints[0].health.cooling(at(1)))
	require.Equal(t, -1, before.endpoints[0].pos)
	require.Equal(t, uint64(7), after.head)
	require.Len(t, dropped, 5)
	for _, text := range dropped {
		require.NotContains(t, text, "secret")
		require.NotContains(t, text, "key-b")
	}
}

// A mark of dropped state holds for reads of that kind at and below its block, for
// 600 s; a deeper refusal doesn't narrow a wider mark (table of rule A5).
func TestPrunedMarkHoldsAtAndBelowItsBlock(t *testing.T) {
	e := &endpoint{}
	read := func(block uint64) blockRead { return blockRead{kind: "state", block: block, numbered: true} }
	e.markPruned(read(900), at(0))
	e.markPruned(read(100), at(10))
	require.False(t, e.has(read(900), at(20)))
	require.False(t, e.has(read(1), at(20)))
	require.True(t, e.has(read(901), at(20)))
	require.True(t, e.has(blockRead{kind: "history", block: 1, numbered: true}, at(20)))
	require.True(t, e.has(blockRead{}, at(20)))
	require.True(t, e.has(read(900), at(610)))
}
