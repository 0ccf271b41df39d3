package console

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestWhatIsKeptIsBounded(t *testing.T) {
	var c commons
	now := sampleID{at: time.Unix(1, 0)}
	c.find(now, commonOf{})
	part := common{html: make([]byte, maxCommons/4)}
	for i := range 10 {
		c.keep(now, commonOf{query: strconv.Itoa(i)}, part)
	}
	assert.Len(t, c.parts, 3)
	c.keep(now, commonOf{query: strings.Repeat("x", maxCommonQuery+1)}, common{})
	c.keep(sampleID{at: time.Unix(2, 0)}, commonOf{path: "of another sample"}, common{})
	assert.Len(t, c.parts, 3)
	_, ok := c.find(sampleID{at: time.Unix(2, 0)}, commonOf{query: "1"})
	assert.False(t, ok)
	assert.Zero(t, c.bytes)
}
