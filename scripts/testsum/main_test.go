package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each case is what go test says, and what must be counted and shown of it.
func TestSummary(t *testing.T) {
	cases := map[string]struct {
		events  []string
		want    counts
		ok      bool
		shown   []string
		unshown []string
	}{
		"tests and subtests count, and passing ones are silent": {
			events: []string{
				`{"Action":"start","Package":"p"}`,
				`{"Action":"run","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Test":"TestA","Output":"chatter\n"}`,
				`{"Action":"pass","Package":"p","Test":"TestA/sub","Elapsed":0}`,
				`{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0}`,
				`{"Action":"output","Package":"p","Output":"PASS\n"}`,
				`{"Action":"pass","Package":"p","Elapsed":1.25}`,
			},
			want:    counts{passed: 2},
			ok:      true,
			shown:   []string{"ok    p  1.2s\n"},
			unshown: []string{"chatter", "PASS"},
		},
		"a failed test shows its output and isn't counted again with its package": {
			events: []string{
				`{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:7: broken\n"}`,
				`{"Action":"fail","Package":"p","Test":"TestA","Elapsed":0}`,
				`{"Action":"pass","Package":"p","Test":"TestB","Elapsed":0}`,
				`{"Action":"output","Package":"p","Output":"FAIL\tp\t1.000s\n"}`,
				`{"Action":"fail","Package":"p","Elapsed":1}`,
			},
			want:    counts{passed: 1, failed: 1},
			shown:   []string{"a_test.go:7: broken", "FAIL  p  1.0s\n"},
			unshown: []string{"FAIL\tp"},
		},
		"a package that doesn't build is a failure": {
			events: []string{
				`{"ImportPath":"p [p.test]","Action":"build-output","Output":"./a.go:3: undefined: x\n"}`,
				`{"ImportPath":"p [p.test]","Action":"build-fail"}`,
				`{"Action":"fail","Package":"p","Elapsed":0,"FailedBuild":"p [p.test]"}`,
				`{"Action":"pass","Package":"q","Test":"TestA","Elapsed":0}`,
				`{"Action":"pass","Package":"q","Elapsed":0}`,
			},
			want:  counts{passed: 1, failed: 1},
			shown: []string{"undefined: x"},
		},
		"a panic shows what the unfinished test printed": {
			events: []string{
				`{"Action":"output","Package":"p","Test":"TestA","Output":"panic: boom\n"}`,
				`{"Action":"fail","Package":"p","Elapsed":0}`,
			},
			want:  counts{failed: 1},
			shown: []string{"panic: boom"},
		},
		"a skipped test is named with its reason": {
			events: []string{
				`{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:9: no IPv6 here\n"}`,
				`{"Action":"skip","Package":"p","Test":"TestA","Elapsed":0}`,
				`{"Action":"pass","Package":"p","Test":"TestB","Elapsed":0}`,
				`{"Action":"pass","Package":"p","Elapsed":0}`,
			},
			want:  counts{passed: 1, skipped: 1},
			ok:    true,
			shown: []string{"no IPv6 here"},
		},
		"a run without tests is no success": {
			events: []string{`{"Action":"skip","Package":"p","Elapsed":0}`},
			want:   counts{},
			shown:  []string{"has no tests"},
		},
		"what isn't an event is shown as it is": {
			events: []string{`go: warning: something`, `{"Action":"pass","Package":"p","Test":"TestA"}`},
			want:   counts{passed: 1},
			ok:     true,
			shown:  []string{"go: warning: something"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			s := newSummary(&out)
			require.NoError(t, s.read(strings.NewReader(strings.Join(c.events, "\n"))))
			assert.Equal(t, c.want, s.counts)
			assert.Equal(t, c.ok, s.counts.ok())
			for _, text := range c.shown {
				assert.Contains(t, out.String(), text)
			}
			for _, text := range c.unshown {
				assert.NotContains(t, out.String(), text)
			}
		})
	}
}

// The closing line has the one form that people and programs look for.
func TestCountsString(t *testing.T) {
	assert.Equal(t, "812 passed, 0 failed, 3 skipped", counts{812, 0, 3}.String())
}
