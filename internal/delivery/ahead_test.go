package delivery

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestAhead(t *testing.T) {
	for _, c := range []struct {
		now  int
		took time.Duration
		want int
	}{
		{0, 0, 1},
		{0, 10 * time.Millisecond, 1},
		{0, 11 * time.Millisecond, 0},
		{0, time.Minute, 0},
		{1, 5 * time.Millisecond, 3},
		{1, 15 * time.Millisecond, 1},
		{1, 21 * time.Millisecond, 0},
		{3, 2 * time.Millisecond, 7},
		{3, 5 * time.Millisecond, 3},
		{3, 11 * time.Millisecond, 1},
		{7, time.Microsecond, 7},
		{7, 5 * time.Millisecond, 7},
		{7, 6 * time.Millisecond, 3},
	} {
		got := c.now
		if then := ahead(c.now, c.took); then != nil {
			got = *then
			assert.NotEqual(t, c.now, got, "it is nil if it stays")
		}
		assert.Equal(t, c.want, got, "%d now, %v", c.now, c.took)
	}
}
