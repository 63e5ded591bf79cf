//go:build !race

package rpcpool_test

const underRace = false
