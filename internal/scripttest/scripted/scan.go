package scripted

import "github.com/tidwall/gjson"

// fields splits a JSON object into its members' raw values without decoding them: requests hold whole conversations,
// and the endpoint reads mostly their top level. Of malformed input it returns the members up to the error.
func fields(object []byte) map[string][]byte {
	out := map[string][]byte{}
	if whole := gjson.ParseBytes(object); whole.IsObject() {
		whole.ForEach(func(key, value gjson.Result) bool {
			out[key.Str] = []byte(value.Raw)
			return true
		})
	}
	return out
}

// elements splits a JSON array in the same way.
func elements(array []byte) (out [][]byte) {
	if whole := gjson.ParseBytes(array); whole.IsArray() {
		whole.ForEach(func(_, value gjson.Result) bool {
			out = append(out, []byte(value.Raw))
			return true
		})
	}
	return out
}
