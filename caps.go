package rpcpool

import "strconv"

// Archive is how much old state an RPC keeps.
type Archive int

// Levels of old state.
const (
	// ArchiveNone asks for nothing: any RPC will do. The zero value.
	ArchiveNone Archive = iota
	// ArchiveRecent asks for an RPC that keeps recent old state, or all of it.
	ArchiveRecent
	// ArchiveFull asks for an RPC that keeps all state since genesis.
	ArchiveFull
)

// String gives the pool's word for the level.
func (a Archive) String() string {
	switch a {
	case ArchiveNone:
		return "none"
	case ArchiveRecent:
		return "recent"
	case ArchiveFull:
		return "full"
	}
	return "Archive(" + strconv.Itoa(int(a)) + ")"
}

// Caps is what the pool measured that an RPC can do. A nil field is unknown, and
// what is unknown never satisfies a requirement (rule A3.1).
type Caps struct {
	// SendTx tells whether the RPC takes raw transactions.
	SendTx *bool
	// Logs is the widest eth_getLogs range that passed, in blocks: 0, 1000 or 10000.
	Logs *uint64
	// Archive is how much old state the RPC has.
	Archive *Archive
}

const (
	narrowLogs = 1000  // blocks that an RPC must take for eth_getLogs at all
	wideLogs   = 10000 // blocks that make it preferred for wider ranges
	recentDeep = 128   // blocks under the head that every full node keeps the state of
)

// requirement is what a call needs of an RPC. Requirements add up (rule A3.1).
type requirement struct {
	sendTx     bool
	logs       bool
	preferWide bool // RPCs that take wide log ranges go first
	archive    Archive
}

// fits tells whether an RPC with these capabilities has what is needed.
func (r requirement) fits(c *Caps) bool {
	if r.sendTx && (c.SendTx == nil || !*c.SendTx) {
		return false
	}
	if r.logs && (c.Logs == nil || *c.Logs < narrowLogs) {
		return false
	}
	if r.archive > ArchiveNone && (c.Archive == nil || *c.Archive < r.archive) {
		return false
	}
	return true
}

// wide tells whether the RPC belongs to the preferred group of a wide log query.
func (r requirement) wide(c *Caps) bool { return c.Logs != nil && *c.Logs >= wideLogs }

// names says what is needed, for errors.
func (r requirement) names() []string {
	var names []string
	if r.sendTx {
		names = append(names, "send_tx")
	}
	if r.logs {
		names = append(names, "logs of "+strconv.Itoa(narrowLogs)+" blocks")
	}
	if r.archive > ArchiveNone {
		names = append(names, "archive "+r.archive.String())
	}
	return names
}
