package rpcpool

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// object gives the members of a value that must be an object and may have these.
func (r *listReader) object(v *jsonValue, field, example string, known ...string) (map[string]*jsonValue, error) {
	if v.token != json.Delim('{') {
		return nil, r.wanted(v, field, example)
	}
	return r.members(v, field, known...)
}

// members gives an object's members by name. Names that begin with _ are the
// author's notes; any other that isn't known is refused, and so is one that stands
// twice.
func (r *listReader) members(v *jsonValue, field string, known ...string) (map[string]*jsonValue, error) {
	members := map[string]*jsonValue{}
	for i := range v.members {
		member := &v.members[i]
		switch {
		case strings.HasPrefix(member.name, "_"):
		case !slices.Contains(known, member.name):
			return nil, r.fail(member.at, field, unknownField(member.name, known))
		case members[member.name] != nil:
			return nil, r.fail(member.at, field, fmt.Sprintf("%q stands twice in this object", member.name))
		default:
			members[member.name] = &member.value
		}
	}
	return members, nil
}

// poolsOwn is a field of the pool's answers that a saved one may keep; it has no
// meaning here.
const poolsOwn = "policy"

// homes says where each field of a file stands.
var homes = []struct{ name, home string }{
	{"chains", "the file's outermost object"},
	{"chain", `an object of "chains"`},
	{"rpcs", `an object of "chains", beside "chain"`},
	{"caps", `an RPC, or beside "rpcs"`},
	{"key", `"chain"`},
	{"aliases", `"chain"`},
	{"url", "an RPC"},
	{"score", "an RPC"},
	{"height", "an RPC"},
	{"send_tx", `"caps"`},
	{"logs", `"caps"`},
	{"archive", `"caps"`},
}

// otherWords are words of other programs for our fields, without case, - and _.
var otherWords = map[string]string{
	"id": "key", "chainid": "key", "name": "key", "network": "chain",
	"alias": "aliases", "names": "aliases",
	"rpc": "rpcs", "endpoints": "rpcs", "nodes": "rpcs", "urls": "rpcs", "providers": "rpcs",
	"endpoint": "url", "uri": "url", "rpcurl": "url", "http": "url", "https": "url", "httpurl": "url", "address": "url", "host": "url",
	"capabilities": "caps", "features": "caps",
	"block": "height", "head": "height", "latestblock": "height",
	"send": "send_tx", "sendtransaction": "send_tx", "sendrawtransaction": "send_tx", "sendraw": "send_tx", "tx": "send_tx",
	"getlogs": "logs", "ethgetlogs": "logs", "logrange": "logs", "maxlogs": "logs", "maxblockrange": "logs",
}

var (
	// showable are names that are no secret, whatever came between the quotes.
	showable  = regexp.MustCompile(`^[A-Za-z][A-Za-z_-]{0,23}$`)
	fewDigits = regexp.MustCompile(`^[A-Za-z0-9_-]{1,10}$`)
)

// noFields are words for what has no field of its own, without case, - and _.
var noFields = map[string]string{
	"weight": "the order of the RPCs is what counts, best first", "priority": "the order of the RPCs is what counts, best first",
	"ws": "RPCs are called over HTTP only", "wss": "RPCs are called over HTTP only", "websocket": "RPCs are called over HTTP only",
	"apikey": "an RPC's key belongs in its URL", "token": "an RPC's key belongs in its URL",
	"auth": "an RPC's login belongs in its URL", "headers": "an RPC's key or login belongs in its URL",
	"proxy": "proxies are given to the program", "proxies": "proxies are given to the program",
}

// unknownField says what is wrong with a name that isn't known at its place, and
// which one may be meant.
func unknownField(name string, known []string) string {
	if key, fault := chainKeyOf(name); fault == "" {
		return fmt.Sprintf(`the chain's key can't be a field's name; wanted {"chain": {"key": %q}, "rpcs": […]}`, key)
	}
	for _, field := range homes {
		if field.name == name {
			return fmt.Sprintf("%q can't stand here, it belongs in %s", name, field.home)
		}
	}
	text := "a field that isn't known"
	if showable.MatchString(name) || fewDigits.MatchString(name) {
		text = fmt.Sprintf("unknown field %q", name)
	}
	if instead := noFields[plainName(name)]; instead != "" {
		return text + "; " + instead
	}
	near, slips := nearest(name, known)
	hint := fmt.Sprintf("; did you mean %q?", near)
	for _, field := range homes {
		if other, more := nearest(name, []string{field.name}); other != "" && (near == "" || more < slips) {
			near, slips = other, more
			hint = fmt.Sprintf("; did you mean %q, which belongs in %s?", near, field.home)
		}
	}
	if near != "" {
		return text + hint
	}
	known = slices.DeleteFunc(slices.Clone(known), func(name string) bool { return name == poolsOwn })
	return fmt.Sprintf("%s; known here: %s (a name that begins with _ is a note)", text, strings.Join(known, ", "))
}

// meant asks whether one of these words was meant; "" where none is near.
func meant(word string, known ...string) string {
	if near, _ := nearest(word, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// nearest gives the one of the known names that a name was meant for, most likely,
// and how many slips it is away: none where it is the same but for case, - and _, or
// is another program's word for it. "" where none is near.
func nearest(name string, known []string) (near string, away int) {
	plain := plainName(name)
	away = 3
	for _, candidate := range known {
		allowed := 2
		if len(candidate) <= 4 {
			allowed = 1 // a short word is soon like another
		}
		n := slips(plain, plainName(candidate))
		if otherWords[plain] == candidate {
			n = 0
		}
		if n <= allowed && n < away {
			near, away = candidate, n
		}
	}
	return near, away
}

func plainName(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
}

// slips counts the letters that were left out, put in, changed or swapped with their
// neighbour between two short words; long words and short ones are far apart.
func slips(a, b string) int {
	if max(len(a), len(b)) > min(len(a), len(b))+3 {
		return max(len(a), len(b))
	}
	// rows of the usual table: distances between the beginnings of a and of b
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			changed := 1
			if a[i-1] == b[j-1] {
				changed = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+changed)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
