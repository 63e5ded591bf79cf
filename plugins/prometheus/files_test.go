package rpcpoolprom_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	rpcpoolprom "github.com/bomzrpc/rpcpool/plugins/prometheus"
)

var described = regexp.MustCompile(`fqName: "(\w+)".*variableLabels: \{([\w,]*)\}`)

// labelsOf gives the labels of each metric.
func labelsOf(t *testing.T) map[string][]string {
	t.Helper()
	all := make(chan *prometheus.Desc, 100)
	rpcpoolprom.New().Describe(all)
	close(all)
	labels := map[string][]string{}
	for desc := range all {
		found := described.FindStringSubmatch(desc.String())
		require.NotNil(t, found, desc.String())
		labels[found[1]] = strings.Split(found[2], ",")
	}
	return labels
}

var (
	metricName = regexp.MustCompile(`rpcpool_\w+`)
	histogram  = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// The dashboard, the alerts and the docs name every metric that there is, and none that
// there isn't. (That Prometheus takes their queries, and has data for each, is a test of
// the folder integration.)
func TestFilesNameTheMetrics(t *testing.T) {
	labels := labelsOf(t)
	for _, c := range []struct {
		file string
		all  bool
	}{{"dashboard.json", true}, {"alerts.yml", false}, {"../../docs/OBSERVABILITY.md", true}} {
		text, err := os.ReadFile(c.file)
		require.NoError(t, err)
		var named []string
		for _, name := range metricName.FindAllString(string(text), -1) {
			name = histogram.ReplaceAllString(name, "")
			named = append(named, name)
			assert.Contains(t, labels, name, c.file)
		}
		for name := range labels {
			assert.True(t, !c.all || slices.Contains(named, name), "%s doesn't name %s", c.file, name)
		}
	}
}

var tableRow = regexp.MustCompile("(?m)^\\| `(rpcpool_\\w+)` \\| (\\w+) \\| `([^|]*)` \\|")

// The table of the docs has the labels of each metric.
func TestDocsHaveTheLabels(t *testing.T) {
	text, err := os.ReadFile("../../docs/OBSERVABILITY.md")
	require.NoError(t, err)
	table := map[string][]string{}
	for _, row := range tableRow.FindAllStringSubmatch(string(text), -1) {
		table[row[1]] = strings.Split(row[3], "`, `")
	}
	require.Equal(t, labelsOf(t), table)
}

// The dashboard can be imported: its ids are its own, its panels don't lie on each other,
// and it asks for no data source but the one that is chosen.
func TestDashboardIsWellFormed(t *testing.T) {
	text, err := os.ReadFile("dashboard.json")
	require.NoError(t, err)
	var dashboard struct {
		UID, Title    string
		SchemaVersion int
		Panels        []struct {
			ID         int
			Title      string
			GridPos    struct{ X, Y, W, H int }
			Datasource *struct{ UID string }
			Type       string
			Targets    []struct{ Expr, RefID string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	require.NotEmpty(t, dashboard.UID)
	require.NotZero(t, dashboard.SchemaVersion)
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, panel := range dashboard.Panels {
		require.False(t, ids[panel.ID], panel.Title)
		ids[panel.ID] = true
		at := panel.GridPos
		require.LessOrEqual(t, at.X+at.W, 24, panel.Title)
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				require.Empty(t, taken[[2]int{x, y}], panel.Title)
				taken[[2]int{x, y}] = panel.Title
			}
		}
		if panel.Type != "row" {
			require.Equal(t, "${datasource}", panel.Datasource.UID)
			require.NotEmpty(t, panel.Targets, panel.Title)
		}
	}
}
