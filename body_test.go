package rpcpool

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// readBodyOf reads a body of the given bytes, of known length or not.
func readBodyOf(data []byte, known bool, hint *sizeHint, limit int64, wrap func(io.Reader) io.Reader) ([]byte, bool, error) {
	res := &http.Response{Body: io.NopCloser(wrap(bytes.NewReader(data))), ContentLength: -1}
	if known {
		res.ContentLength = int64(len(data))
	}
	return readAnswer(res, hint, limit)
}

// Bodies of all sizes come out whole, however they arrive, and not a byte over the limit.
func TestReadAnswer(t *testing.T) {
	readers := map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r }, "halves": iotest.HalfReader,
		"with the end": iotest.DataErrReader,
	}
	for _, size := range []int{0, 1, 511, 512, 513, 70_000, trustBody - 1, trustBody, trustBody + 1, 3*trustBody + 7} {
		data := bytes.Repeat([]byte("x"), size)
		for name, wrap := range readers {
			for _, known := range []bool{true, false} {
				for _, last := range []int64{0, 2 * trustBody, 5 * trustBody} {
					var hint sizeHint
					hint.last.Store(last)
					body, more, err := readBodyOf(data, known, &hint, int64(size), wrap)
					require.NoError(t, err)
					require.False(t, more)
					require.True(t, bytes.Equal(data, body), "%d %s", size, name)
					if size == 0 {
						continue
					}
					body, more, err = readBodyOf(data, known, &hint, int64(size)-1, wrap)
					require.NoError(t, err)
					require.True(t, more)
					require.Len(t, body, size-1)
				}
			}
		}
	}
	broken := errors.New("broken")
	_, _, err := readBodyOf([]byte("abc"), true, new(sizeHint), 10, func(r io.Reader) io.Reader { return io.MultiReader(r, iotest.ErrReader(broken)) })
	require.ErrorIs(t, err, broken)
}

// A large answer is held once: of known length, and of unknown length after the first
// (rule F2); a promise of much with nothing behind it reserves little.
func TestLargeAnswersAreHeldOnce(t *testing.T) {
	data := []byte(strings.Repeat("y", 20*trustBody))
	whole := func(r io.Reader) io.Reader { return r }
	var hint sizeHint
	for _, known := range []bool{true, false} { // what is known of the first serves the second
		bytesPerRead := testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				_, _, _ = readBodyOf(data, known, &hint, 1<<30, whole)
			}
		}).AllocedBytesPerOp()
		require.Less(t, bytesPerRead, int64(len(data))*11/10, "known length: %v", known)
	}
	res := &http.Response{Body: io.NopCloser(strings.NewReader("little")), ContentLength: 1 << 28}
	body, _, err := readAnswer(res, new(sizeHint), 1<<30)
	require.NoError(t, err)
	require.LessOrEqual(t, cap(body), trustBody)
}

// Whoever keeps a result keeps its buffer: an RPC whose last answer was large has small
// ones read into small buffers, and one that is much less than was expected is copied.
func TestBuffersFitTheirAnswers(t *testing.T) {
	whole := func(r io.Reader) io.Reader { return r }
	for _, size := range []int{1, 100, smallBody, 10_000, trustBody, trustBody + 1, 3 * trustBody} {
		for _, known := range []bool{true, false} {
			var hint sizeHint
			hint.note(50 * trustBody)
			body, more, err := readBodyOf(bytes.Repeat([]byte("x"), size), known, &hint, 1<<30, whole)
			require.NoError(t, err)
			require.False(t, more)
			require.Len(t, body, size)
			require.LessOrEqual(t, cap(body), max(smallBody, 4*size), "%d %v", size, known)
		}
	}
}

// The limit may be as large as there are numbers, whatever an RPC says that it sends.
func TestAnswerWithoutALimit(t *testing.T) {
	data := bytes.Repeat([]byte("x"), 3*trustBody)
	for _, said := range []int64{-1, 0, 1 << 62, math.MaxInt64} {
		res := &http.Response{Body: io.NopCloser(bytes.NewReader(data)), ContentLength: said}
		body, more, err := readAnswer(res, new(sizeHint), math.MaxInt64)
		require.NoError(t, err)
		require.False(t, more)
		require.True(t, bytes.Equal(data, body))
	}
}

// An RPC's last large answer stays the measure when small ones follow it.
func TestSmallAnswersAreNoMeasure(t *testing.T) {
	var hint sizeHint
	for _, size := range []int{3 * trustBody, 10, trustBody} {
		_, _, err := readBodyOf(bytes.Repeat([]byte("x"), size), false, &hint, 1<<30, func(r io.Reader) io.Reader { return r })
		require.NoError(t, err)
		require.Equal(t, int64(3*trustBody), hint.last.Load())
	}
}

// No more is reserved than may be kept, however much an RPC says that it sends.
func TestNothingIsReservedBeyondTheLimit(t *testing.T) {
	const limit = 2 * trustBody
	res := &http.Response{Body: io.NopCloser(bytes.NewReader(make([]byte, 3*trustBody))), ContentLength: 1 << 40}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, more, err := readAnswer(res, new(sizeHint), limit)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.True(t, more)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(2*limit))
}
