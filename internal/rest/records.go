package rest

import (
	stdjson "encoding/json"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Records encodes records as this API shows them, for the data of events. It omits what depends
// on the reader.
type Records struct{}

func encodeRecord(v any) stdjson.RawMessage {
	b, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true)) // like httpx.WriteJSON
	if err != nil {                                            // these types can always be encoded
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return b
}
