package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
)

// asProgram, in the environment, has this binary be the program instead of its tests.
const asProgram = "RPCPOOL_EXAMPLE_LOGS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// The program is killed in the middle of its work again and again. In the end there
// is each log once, in order.
func TestKilledAgainAndAgain(t *testing.T) {
	out := filepath.Join(t.TempDir(), "logs.jsonl")
	random := rand.New(rand.NewPCG(7, 7))
	kills := 0
	for {
		program, lines := start(t, out)
		mayLive := 1 + random.IntN(14)
		for lines.Scan() && mayLive > 0 {
			if strings.HasPrefix(lines.Text(), "block ") {
				mayLive--
			}
		}
		if mayLive > 0 { // it came to its end
			require.NoError(t, program.Wait())
			break
		}
		require.NoError(t, program.Process.Kill())
		_, _ = io.Copy(io.Discard, programOutput{lines})
		require.Error(t, program.Wait(), "it wasn't killed")
		kills++
		require.Less(t, kills, 200, "it doesn't come to an end")
	}
	t.Logf("killed %d times", kills)
	require.Greater(t, kills, 5, "it was hardly disturbed")
	requireEachBlockOnce(t, out)

	program, lines := start(t, out) // there is nothing left to do
	for lines.Scan() {
		require.NotContains(t, lines.Text(), "block 1")
	}
	require.NoError(t, program.Wait())
	requireEachBlockOnce(t, out)
}

// start runs the demo, with a line for each piece.
func start(t *testing.T, out string) (*exec.Cmd, *bufio.Scanner) {
	self, err := os.Executable()
	require.NoError(t, err)
	program := exec.CommandContext(t.Context(), self, "-demo", "-to", "latest", "-out", out, "-every", "0s")
	program.Env = append(os.Environ(), asProgram+"=1", "TMPDIR="+t.TempDir())
	output, err := program.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, program.Start())
	return program, bufio.NewScanner(output)
}

// programOutput reads what is left of a program's lines.
type programOutput struct{ lines *bufio.Scanner }

func (p programOutput) Read([]byte) (int, error) {
	if p.lines.Scan() {
		return 0, nil
	}
	return 0, io.EOF
}

func requireEachBlockOnce(t *testing.T, path string) {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	next := uint64(0)
	for lines := bufio.NewScanner(file); lines.Scan(); next++ {
		var log struct{ BlockNumber string }
		require.NoError(t, json.Unmarshal(lines.Bytes(), &log), "line %d", next+1)
		require.Equal(t, fmt.Sprintf("0x%x", next), log.BlockNumber, "line %d", next+1)
	}
	require.Equal(t, uint64(demoHead+1), next)
}

// Whatever a killed writer left, bytes of a piece that doesn't count or a progress
// that was never renamed, the next one goes on after the last piece that counts.
func TestLogFileGoesOnAfterTheLastPieceThatCounts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs.jsonl")
	query := logQuery{Chain: "1", Addresses: []string{"0xa"}, From: 10}
	file := reopen(t, path, query)
	require.Equal(t, uint64(10), file.done.Next)
	require.NoError(t, file.add(chunk(10, 19, `{"n": 1}`, `{"n":`+"\n"+`2}`)))
	require.NoError(t, file.add(chunk(20, 29)))
	require.NoError(t, file.close())

	const counts = "{\"n\":1}\n{\"n\":2}\n"
	for _, left := range []string{"", "{", "{\"n\":3}", "{\"n\":3}\n{\"n\":4}\n"} {
		require.NoError(t, os.WriteFile(path, []byte(counts+left), 0o600))
		require.NoError(t, os.WriteFile(path+".progress.new", []byte(`{"next":9`), 0o600))
		file = reopen(t, path, query)
		require.Equal(t, progress{Query: query, Next: 30, Length: int64(len(counts)), Logs: 2}, file.done)
		require.NoError(t, file.close())
		requireText(t, path, counts)
	}
	file = reopen(t, path, query)
	require.NoError(t, file.add(chunk(30, 30, `{"n":3}`)))
	require.NoError(t, file.close())
	requireText(t, path, counts+"{\"n\":3}\n")
	require.Equal(t, uint64(31), reopen(t, path, query).done.Next)
}

func reopen(t *testing.T, path string, query logQuery) *logFile {
	t.Helper()
	file, err := openLogFile(path, query)
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.close() })
	return file
}

func chunk(from, to uint64, logs ...string) rpcpool.LogChunk {
	c := rpcpool.LogChunk{From: from, To: to}
	for _, log := range logs {
		c.Logs = append(c.Logs, json.RawMessage(log))
	}
	return c
}

func requireText(t *testing.T, path, want string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(text))
}

// A file that isn't the program's own, is of another query, or was changed by
// somebody else is left alone.
func TestLogFileRefusesWhatIsntItsOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs.jsonl")
	query := logQuery{Chain: "1", From: 10}
	require.NoError(t, os.WriteFile(path, []byte("somebody's"), 0o600))
	_, err := openLogFile(path, query)
	require.ErrorContains(t, err, "use another file")
	requireText(t, path, "somebody's")

	require.NoError(t, os.Remove(path))
	require.NoError(t, reopen(t, path, query).add(chunk(10, 19, `{"n":1}`)))
	for _, other := range []logQuery{
		{Chain: "2", From: 10}, {Chain: "1", From: 11}, {Chain: "1", From: 10, Addresses: []string{"0xb"}}, {Chain: "1", From: 10, Topics: []string{"0xc"}},
	} {
		_, err = openLogFile(path, other)
		require.ErrorContains(t, err, "another query")
	}
	require.NoError(t, os.Truncate(path, 3))
	_, err = openLogFile(path, query)
	require.ErrorContains(t, err, "shorter")
	require.NoError(t, os.WriteFile(path+".progress", []byte("?"), 0o600))
	_, err = openLogFile(path, query)
	require.ErrorContains(t, err, "isn't a file of this program")
	requireText(t, path, `{"n`)
}

// Flags that can't work end the program with status 2, and say what is missing.
func TestFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{nil, "-out is missing"},
		{[]string{"-out", "x"}, "-chain and -from are needed"},
		{[]string{"-out", "x", "-chain", "1", "-from", "soon"}, "a block number is wanted"},
		{[]string{"-wrong"}, "-h lists them"},
		{[]string{"-demo", "-out", "x", "more"}, "-h lists them"},
	} {
		var said strings.Builder
		require.Equal(t, statusUsage, run(t.Context(), c.args, &said), c.args)
		require.Contains(t, said.String(), c.says)
	}
	opts, err := parse([]string{
		"-chain", "1", "-from", "0x10", "-address", "0xa, 0xb", "-topic", "0xc", "-out", "x",
	}, func(string) string { return "socks5://p1:1,socks5://p2:2" })
	require.NoError(t, err)
	require.Equal(t, logQuery{Chain: "1", Addresses: []string{"0xa", "0xb"}, Topics: []string{"0xc"}, From: 16}, opts.query)
	require.Equal(t, rpcpool.LogFilter{Address: []string{"0xa", "0xb"}, Topics: []any{[]string{"0xc"}}}, opts.query.filter())
	require.Equal(t, "finalized", opts.to)
	require.Len(t, opts.config.Proxies, 2)

	opts, err = parse([]string{"-chain", "1", "-from", "16", "-address", " , ", "-out", "x"}, func(string) string { return "" })
	require.NoError(t, err)
	require.Equal(t, logQuery{Chain: "1", From: 16}, opts.query, "as it is read back from a file")
}
