package doctor

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	jobtypes "routemaster/internal/jobs"
	"routemaster/internal/machines/engine"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// TestTheLayoutKnowsEveryKey holds what doctor knows of keys to the keys of the store and the
// queue.
func TestTheLayoutKnowsEveryKey(t *testing.T) {
	const uid = "AAAABBBBCCCCDDDD-_-_"
	var k store.Keys
	var jobs queue.Keys
	ofStore := map[string]rdb.Kind{
		k.Topics(): rdb.Set, k.Owners(): rdb.Hash, k.Owned(): rdb.Hash, k.Unused(): rdb.Hash,
		k.Topic("x"): rdb.Hash, k.TopicSubscribers("x"): rdb.Set, k.Subscribers(): rdb.Set,
		k.Subscriber("x"): rdb.Hash, k.SubscriberTopics("x"): rdb.Set, k.Tokens(): rdb.Hash,
		k.Rotations(): rdb.Hash, k.Identity(): rdb.Hash, k.Batch(uid): rdb.List, k.Original(uid): rdb.List,
		k.Current("x"): rdb.Set, k.CurrentOfLane("x", 1): rdb.Set, k.Failed("x"): rdb.SortedSet, k.Delivery("x"): rdb.Hash,
		k.Traceparents(uid): rdb.List, k.Migration(): rdb.String, k.BatchesIndex(): rdb.SortedSet,
		k.EventGauge(): rdb.Hash, k.BytesGauge(): rdb.Hash, k.BatchGauge(): rdb.Hash, k.Idempotency("x", 8): rdb.Hash,
		k.Counters(): rdb.Hash, k.Monitored(): rdb.Hash, k.BatchState(uid): rdb.Hash,
		k.Options("x"): rdb.Hash, k.Attempts("x"): rdb.List, k.DeadLetters("x"): rdb.SortedSet,
		k.DeadLetter(uid): rdb.List, k.DeadLetterCause(uid): rdb.Hash,
		k.Plans(): rdb.Hash, k.History("x"): rdb.List, k.HistoryLimits("x"): rdb.Hash,
		k.Replay(uid): rdb.Hash, k.ReplayBatches(uid): rdb.Set, k.RunningReplays(): rdb.Set, k.Replays("x"): rdb.Set,
		k.DeadLetterEvents(): rdb.Hash, k.DeadLetterBytes(): rdb.Hash,
		k.Gaps("x"): rdb.Hash, k.Retention(): rdb.Set, k.Copying(): rdb.String,
	}
	ofQueue := map[string]rdb.Kind{
		jobs.JobsIndex(bus.QueueMain): rdb.Set, jobs.Scheduled(bus.QueueMain): rdb.SortedSet,
		jobs.Instant(bus.QueueMain): rdb.List, jobs.Pending(bus.QueueMain, "w1"): rdb.List,
		jobs.PendingIndex(bus.QueueMain): rdb.Set, jobs.Lane(bus.JobBatch, "x"): rdb.SortedSet,
		jobs.MaxInFlight(): rdb.Hash, jobs.Workers(): rdb.Hash,
	}
	var work jobtypes.Keys
	ofJobs := map[string]rdb.Kind{
		work.Types(): rdb.Set, work.TypesOf("x"): rdb.Set, work.Copies("x"): rdb.Set, work.Type("x"): rdb.Hash, work.Schedules(): rdb.Hash, work.Job("x"): rdb.Hash,
		work.Data("x"): rdb.String, work.Open("x"): rdb.SortedSet, work.Archive("x", jobtypes.Failed): rdb.SortedSet,
		work.Removed("x", "y"): rdb.String, work.Pulls(): rdb.Stream,
	}
	var labels engine.Keys
	ofLabels := map[string]rdb.Kind{
		labels.Definitions(): rdb.Hash, labels.Walks(): rdb.Hash, labels.Label("x", "y"): rdb.Hash,
		labels.Metadata("x", "y"): rdb.String, labels.History("x", "y"): rdb.List, labels.Labels("x", "y"): rdb.SortedSet,
		labels.Names("x"): rdb.SortedSet, labels.Errored("x"): rdb.SortedSet, labels.Standings("x"): rdb.Hash,
		labels.Outbox("x"): rdb.List, labels.Published("x"): rdb.Hash,
	}
	var relayed store.Keys
	ofRelays := map[string]rdb.Kind{
		relayed.Partition(): rdb.String, relayed.RelayGeneration(): rdb.String, relayed.Deleting("x"): rdb.String,
		relayed.Outboxes("x"): rdb.Hash, relayed.Outbox(7): rdb.List, relayed.RelayTaken(): rdb.Hash,
		relayed.RelayCarried(): rdb.Hash, relayed.Relayed(7): rdb.List, relayed.RelayStarts(): rdb.Hash,
	}
	for file, want := range map[string]map[string]rdb.Kind{
		"../store/keys.go": ofStore, "../queue/keys.go": ofQueue,
		"../jobs/keys.go": ofJobs, "../machines/engine/keys.go": ofLabels,
		"../store/relays_keys.go": ofRelays,
	} {
		for key, kind := range want {
			family, _ := FamilyOf(key)
			assert.Equal(t, kind, family.Kind, key)
		}
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, strings.Count(string(source), "func (k Keys)"), len(want), "a key is not looked up")
	}
}
