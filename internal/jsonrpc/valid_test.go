package jsonrpc

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// everyForm has each form of JSON's values in it, short enough to be bent byte by byte.
const everyForm = ` {"a":[1,-0.5e+10,0,12E-3,1.25e7 ],"b\u00fF\n\"\\\/\b\f\r\t":{"c":true,"d":false,` + "\r\n\t" +
	`"é":null,"":{},"x":[] , "long":"0123456789abcdef0123456789abcdef é\ud800!"},"z":[[""],{"k":[{}]}]} `

// requireSameValidity has to be quick: some tests ask a hundred thousand times.
func requireSameValidity(t *testing.T, data []byte) {
	t.Helper()
	if want := json.Valid(data); valid(data) != want {
		t.Fatalf("encoding/json says %v of %q", want, data)
	}
}

// With any one byte put in place of another, put in or left out, and cut off anywhere,
// JSON is told from what is none as encoding/json does it.
func TestValidityIsThatOfEncodingJSON(t *testing.T) {
	require.True(t, valid([]byte(everyForm)))
	for at := range len(everyForm) {
		requireSameValidity(t, []byte(everyForm[:at]))
		requireSameValidity(t, []byte(everyForm[at:]))
		requireSameValidity(t, []byte(everyForm[:at]+everyForm[at+1:]))
		bent := []byte(everyForm)
		grown := []byte(everyForm[:at] + "?" + everyForm[at:])
		for b := range 256 {
			bent[at], grown[at] = byte(b), byte(b)
			requireSameValidity(t, bent)
			requireSameValidity(t, grown)
		}
	}
}

// A string is read by words of eight bytes: whatever stands in it is seen in each place
// of a word, behind any bytes before it, and near the end of the data.
func TestEveryByteOfAStringIsSeen(t *testing.T) {
	for _, filling := range []string{"a", "\xff", "\x7f", "!", "#", "[", "]"} {
		for before := range 18 {
			for after := range 10 {
				data := []byte(`"` + strings.Repeat(filling, before) + "?" + strings.Repeat(filling, after) + `"`)
				for b := range 256 {
					data[before+1] = byte(b)
					requireSameValidity(t, data)
				}
			}
		}
	}
}

// Numbers are taken and refused as encoding/json does it, alone and in a list.
func TestNumbersAreThoseOfEncodingJSON(t *testing.T) {
	const signs = "-+.eE019x "
	var spell func(number string)
	spell = func(number string) {
		requireSameValidity(t, []byte(number))
		requireSameValidity(t, []byte("["+number+","+number+"]"))
		if len(number) < 5 {
			for _, sign := range signs {
				spell(number + string(sign))
			}
		}
	}
	spell("")
}

// Values are nested as deep as encoding/json goes, and no deeper, wherever they stand.
func TestDepthIsThatOfEncodingJSON(t *testing.T) {
	for _, form := range []struct{ opening, middle, closing string }{
		{`[`, ``, `]`}, {`[`, `1`, `]`}, {`{"a":`, `1`, `}`}, {`{"a":`, `{}`, `}`}, {`[`, `[]`, `]`}, {`[{"a":`, `""`, `}]`}, {`[[],`, `null`, `]`},
	} {
		for _, levels := range []int{1, 4999, 5000, 5001, 9998, 9999, 10000, 10001, 20000} {
			value := strings.Repeat(form.opening, levels) + form.middle + strings.Repeat(form.closing, levels)
			requireSameValidity(t, []byte(value))
			answer := []byte(`{"result":` + value + `}`)
			_, err := ParseAnswer(answer)
			require.Equal(t, json.Valid(answer), err == nil)
			batch := []byte(`[{"id":1,"result":` + value + `}]`)
			_, err = ParseBatchAnswer(batch)
			require.Equal(t, json.Valid(batch), err == nil)
			array := []byte(`[` + value + `]`)
			_, isArray := Elements(array)
			require.Equal(t, json.Valid(array), isArray)
		}
	}
}

// What encoding/json takes for JSON is taken, and nothing else.
func FuzzValid(f *testing.F) {
	for _, seed := range []string{
		everyForm, ``, ` `, `[`, `{`, `"`, `"\`, `"\u`, `"\u12`, `"\u12G4"`, `{"a"`, `{"a":`, `{"a":1,`, `{,}`, `[,]`, `[1,]`, `{"a":1,}`, `{1:2}`,
		`nul`, `nullx`, `tru`, `TRUE`, `-`, `+1`, `01`, `-01`, `1.`, `.5`, `1e`, `1e+`, `0e0`, `[0123]`, `[1 2]`, `"a" "b"`, `[]]`, `{"a":1}}`, `[}`, `{]`,
		"\"\x7f\xc3\x28\"", "\"tab\there\"", "[\"\x00\"]", "\ufeff[]", "[1\v]", `"eight by eight!!"`, `"a backslash at the end\`, `/**/1`, `'a'`, `Infinity`, `NaN`,
		strings.Repeat(`[`, 100) + strings.Repeat(`]`, 100), strings.Repeat(`{"a":[`, 20) + strings.Repeat(`]}`, 20), `"` + strings.Repeat("0", 300) + `"`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		require.Equal(t, json.Valid(data), valid(data))
	})
}
