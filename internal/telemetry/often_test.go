package telemetry_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/telemetry"
)

// times matches the count of a line.
var times = regexp.MustCompile(`times=(\d+)`)

// counted returns the number of lines, and of events they stand for; first lines have no count.
func counted(text string) (lines, stand int) {
	for line := range strings.Lines(text) {
		lines, stand = lines+1, stand+1
		if found := times.FindStringSubmatch(line); found != nil {
			n, _ := strconv.Atoi(found[1])
			stand += n - 1
		}
	}
	return lines, stand
}

func TestALineThatRepeatsIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out rdbtest.Buffer
		log := telemetry.NewLogger(&out, slog.LevelInfo, false)
		for i := range 20 * 35 {
			telemetry.Often(log, "shop").Warn("failed to deliver", "subscriber", "shop", "try", i)
			if i == 0 {
				assert.Contains(t, out.String(), `msg="failed to deliver" subscriber=shop try=0`+"\n", "the first at once")
				telemetry.Often(log, "search").Warn("failed to deliver", "subscriber", "search")
				telemetry.Often(log, "shop").Warn("gave up on a batch", "subscriber", "shop")
				log.With("a", 1).Warn("failed to deliver")
				log.Warn("failed to deliver")
				assert.Equal(t, 5, strings.Count(out.String(), "\n"), "other subjects, messages and loggers have lines of their own: %s", &out)
				out.Reset()
				synctest.Wait()
				time.Sleep(25 * time.Millisecond) // so that no line is written as an interval ends
			}
			time.Sleep(50 * time.Millisecond)
		}
		synctest.Wait()
		lines, stand := counted(out.String())
		assert.Equal(t, 3, lines, "one in 10 s: %s", &out)
		assert.Equal(t, 199+200+200, stand, "%s", &out)
		assert.Contains(t, out.String(), "subscriber=shop try=399 times=200\n", "the fields of the latest")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		_, stand = counted(out.String())
		assert.Equal(t, 20*35-1, stand, "the last are counted although none follows: %s", &out)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		out.Reset()
		telemetry.Often(log, "shop").Warn("failed to deliver", "subscriber", "shop")
		assert.NotContains(t, out.String(), "times", "after a pause it is written at once")
	})
}

func TestLinesOfManySubjectsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out rdbtest.Buffer
		log := telemetry.NewLogger(&out, slog.LevelInfo, true)
		for i := range 10_000 {
			source := fmt.Sprintf("10.0.%d.%d", i/256, i%256)
			telemetry.Often(log, source).Info("refused credentials", "source", source)
		}
		assert.Equal(t, 101, strings.Count(out.String(), "\n"))
		out.Reset()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		assert.Regexp(t, `\A\{.*"source":"10\.0\.39\.15","times":9899,"others":true\}\n\z`, out.String())
	})
}

func TestNoCountIsLostAtTheEnd(t *testing.T) {
	var out bytes.Buffer
	log := telemetry.NewLogger(&out, slog.LevelInfo, false)
	for range 3 {
		telemetry.Often(log, "shop").Warn("failed to deliver")
	}
	telemetry.Flush(log)
	telemetry.Often(log, "shop").Warn("failed to deliver")
	lines, stand := counted(out.String())
	assert.Equal(t, 3, lines, "%s", &out)
	assert.Equal(t, 4, stand, "%s", &out)
}

func TestAtDebugEveryLineIsWritten(t *testing.T) {
	var out bytes.Buffer
	log := telemetry.NewLogger(&out, slog.LevelDebug, false)
	for range 3 {
		telemetry.Often(log, "shop").Warn("failed to deliver")
	}
	assert.Equal(t, 3, strings.Count(out.String(), "\n"))
}
