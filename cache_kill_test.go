package rpcpool

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	cacheWriterDir = "RPCPOOL_TEST_CACHE_WRITER"
	killedWriters  = 1000
)

// A writer that is killed at any moment leaves the old file or the new one, never
// a torn one (rule A2.5): 1,000 processes are killed while they write.
func TestCacheFileIsNeverTornByAKill(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	f := newCacheFile(dir, "8453", ArchiveNone)
	require.NoError(t, f.write(numberedList(0), at(0)))
	advanced := 0
	for i := range killedWriters {
		child := exec.Command(self)
		child.Env = append(os.Environ(), cacheWriterDir+"="+dir)
		ready, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		_, err = ready.Read(make([]byte, 1))
		require.NoError(t, err)
		timer := time.NewTimer(time.Duration(i%40) * 50 * time.Microsecond) // a real process has real time
		<-timer.C
		require.NoError(t, child.Process.Kill())
		_ = child.Wait()

		list, _, err := f.read()
		require.NoError(t, err, "after kill %d", i)
		require.Len(t, list.RPCs, writtenRPCs)
		for _, rpc := range list.RPCs {
			require.Equal(t, list.RPCs[0].Height, rpc.Height, "a mixture of two writes")
		}
		if list.RPCs[0].Height > 0 {
			advanced++
		}
	}
	require.Greater(t, advanced, killedWriters/2, "the writers hardly wrote: the test shows nothing")
}

const writtenRPCs = 200

// numberedList is a list in which every entry carries the same number.
func numberedList(number uint64) *List {
	list := &List{Key: "eip155:8453"}
	for i := range writtenRPCs {
		list.RPCs = append(list.RPCs, RPC{URL: fmt.Sprintf("https://r%d.test/key", i), Height: number})
	}
	return list
}

func writeCacheForEver(dir string) {
	f := newCacheFile(dir, "8453", ArchiveNone)
	fmt.Print("x")
	for number := uint64(1); ; number++ {
		if err := f.write(numberedList(number), time.Now()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
