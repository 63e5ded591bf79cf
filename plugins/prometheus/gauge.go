package rpcpoolprom

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// gauge is a value at the moment of a scrape. A metric made by the client library would copy
// and sort its labels; thousands of these share theirs.
type gauge struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair // in the order of their names; never changed
	value  float64
}

// Desc implements [prometheus.Metric].
func (g *gauge) Desc() *prometheus.Desc { return g.desc }

// Write implements [prometheus.Metric].
func (g *gauge) Write(to *dto.Metric) error {
	to.Label, to.Gauge = g.labels, &dto.Gauge{Value: &g.value}
	return nil
}

func send[N int | uint64](ch chan<- prometheus.Metric, desc *prometheus.Desc, value N, labels []*dto.LabelPair) {
	ch <- &gauge{desc, labels, float64(value)}
}

func pair(name, value string) *dto.LabelPair { return &dto.LabelPair{Name: &name, Value: &value} }

// with gives labels and one more, whose name comes after theirs.
func with(labels []*dto.LabelPair, more *dto.LabelPair) []*dto.LabelPair {
	return append(slices.Clip(labels), more)
}

// stateLabels are the label "state" for each of some states.
func stateLabels[S ~string](states []S) (labels []*dto.LabelPair) {
	for _, state := range states {
		labels = append(labels, pair("state", string(state)))
	}
	return labels
}

var (
	rpcStateLabels   = stateLabels(rpcStates[:])
	proxyStateLabels = stateLabels(proxyStates[:])
)
