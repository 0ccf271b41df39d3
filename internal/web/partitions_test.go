package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/web/webtest"
)

// parted is the API of a bus with partitions.
type parted struct {
	*webtest.API
	bus *storetest.Partitions
}

func eachParted(t *testing.T, test func(t *testing.T, a parted)) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		p := storetest.NewPartitions(t, redis.Open(t))
		test(t, parted{webtest.On(t, p.Bus), p})
	})
}

// read reads a path's response to root.
func (a parted) read(path string, into any) {
	a.T.Helper()
	answer := a.Do(rootKey, "GET", path, "")
	require.Equal(a.T, 200, answer.Status, "%s %s", path, answer.Body)
	require.NoError(a.T, json.Unmarshal([]byte(answer.Body), into))
}

// client adds a client whose subscription is in a partition.
func (a parted) client(number rdb.Number) string {
	a.T.Helper()
	token := string(a.bus.TokenIn(number))
	answer := a.Do(rootKey, "POST", "/api_tokens", fmt.Sprintf(`{"name":"client-%d","token":%q}`, number, token))
	require.Equal(a.T, 201, answer.Status, answer.Body)
	return token
}

func (a parted) relay() {
	for range 2 {
		for number := range a.bus.All {
			a.bus.Relay(rdb.Number(number))
		}
		a.bus.MS += 20
	}
}

// TestABusWithPartitionsLooksLikeOne to its clients: no response shows where things are stored.
func TestABusWithPartitionsLooksLikeOne(t *testing.T) {
	eachParted(t, func(t *testing.T, a parted) {
		a.bus.MS = int(time.Since(storetest.Start).Milliseconds())
		topics := []bus.TopicName{a.bus.TopicIn(0, 0), a.bus.TopicIn(1, 0), a.bus.TopicIn(2, 0)}
		list, err := json.Marshal(topics)
		require.NoError(t, err)
		var tokens []string
		for i := range a.bus.All {
			token := a.client(rdb.Number(i))
			a.RequireDone(token, "POST", "/subscription", fmt.Sprintf(`{"topics":%s,"callback":"https://x.example/","timeout":0,"max":2}`, list))
			tokens = append(tokens, token)
		}
		for _, topic := range topics {
			a.RequireDone(alice, "POST", "/topics/"+string(topic), `{"type":"noop","url":"https://x.example/1"}`)
			assert.Equal(t, 403, a.Do(bob, "POST", "/topics/"+string(topic), `{"type":"noop","url":"https://x.example/1"}`).Status)
		}
		a.relay()

		var listed []struct {
			Name   string
			Events int
		}
		a.read("/topics", &listed)
		require.Len(t, listed, len(topics))
		for _, topic := range listed {
			assert.Equal(t, 1, topic.Events)
		}
		var subscribers []struct {
			Name   string
			Topics []string
			Events struct{ Queued int }
		}
		a.read("/subscriptions", &subscribers)
		require.Len(t, subscribers, 3)
		for i, sub := range subscribers {
			assert.Equal(t, fmt.Sprintf("client-%d 3 3", i), fmt.Sprint(sub.Name, " ", len(sub.Topics), " ", sub.Events.Queued))
		}
		var page []struct{ Name string }
		a.read("/topics?limit=2", &page)
		assert.Len(t, page, 2)
		var detail struct{ Subscribers []struct{ Name string } }
		a.read("/topics/"+string(topics[0]), &detail)
		assert.Len(t, detail.Subscribers, 3)

		var next []struct {
			Batch struct{ Subscriber string }
		}
		a.read("/queues/main", &next)
		assert.Len(t, next, 6, "two batches of three events each")
		a.read("/queues/main?limit=4", &next)
		assert.Len(t, next, 4)
		assert.Equal(t, 204, a.Do(rootKey, "GET", "/pulse", "").Status)
		assert.Equal(t, 200, a.Do("", "GET", "/health/ready", "").Status)

		for _, token := range tokens {
			for _, of := range []struct{ who, path string }{{token, "/subscriber"}, {rootKey, "/subscribers/" + token}} {
				for _, below := range []string{"", "/batches", "/attempts", "/dead_letters", "/dead_letters/count", "/replays", "/secrets"} {
					assert.Equal(t, 200, a.Do(of.who, "GET", of.path+below, "").Status, below)
				}
			}
			var batches []struct{ ID string }
			require.NoError(t, json.Unmarshal([]byte(a.Do(token, "GET", "/subscriber/batches", "").Body), &batches))
			assert.Len(t, batches, 2)
			a.RequireDone(token, "DELETE", "/subscriber/batches/"+batches[0].ID, "")
			a.RequireDone(token, "POST", "/subscriber/pause", `{}`)
			a.RequireDone(token, "POST", "/subscriber/resume", "")
			assert.Equal(t, 204, a.Do(token, "PATCH", "/subscriber", `{"lanes":2}`).Status)
			a.RequireDone(token, "DELETE", "/subscription/topics/"+string(topics[1]), "")
			assert.Equal(t, 404, a.Do(token, "DELETE", "/subscription/topics/"+string(topics[1]), "").Status)
			a.RequireDone(token, "DELETE", "/subscription", "")
			assert.Equal(t, 404, a.Do(token, "GET", "/subscriber", "").Status)
		}
		for _, topic := range topics {
			a.RequireDone(alice, "DELETE", "/topics/"+string(topic), "")
		}
		a.read("/topics", &listed)
		assert.Empty(t, listed)
		for _, token := range tokens {
			a.RequireDone(rootKey, "DELETE", "/api_tokens/"+token, "")
			assert.Equal(t, 401, a.Do(token, "GET", "/whoami", "").Status)
		}
	})
}

// TestATokenOfAPartitionIsRotated requires that a rotation keeps the queue and the topics.
func TestATokenOfAPartitionIsRotated(t *testing.T) {
	eachParted(t, func(t *testing.T, a parted) {
		for i := range a.bus.All {
			old, topic := a.client(rdb.Number(i)), string(a.bus.TopicIn(rdb.Number((i+1)%3), 0))
			a.RequireDone(old, "POST", "/subscription", fmt.Sprintf(`{"topics":[%q],"callback":"https://x.example/"}`, topic))
			a.RequireDone(old, "POST", "/topics/"+topic, `{"type":"noop","url":"https://x.example/1"}`)
			var step struct {
				Token, After string
				Done         bool
			}
			for path := "/api_tokens/" + old + "/rotate"; !step.Done; path = "/api_tokens/" + old + "/rotate?after=" + step.After {
				answer := a.Do(rootKey, "POST", path, "")
				require.Equal(t, 200, answer.Status, answer.Body)
				require.NoError(t, json.Unmarshal([]byte(answer.Body), &step))
			}
			assert.Equal(t, 401, a.Do(old, "GET", "/whoami", "").Status)
			assert.Equal(t, 200, a.Do(step.Token, "GET", "/subscriber", "").Status)
			a.RequireDone(step.Token, "POST", "/topics/"+topic, `{"type":"noop","url":"https://x.example/2"}`)
			a.bus.MS = int(time.Since(storetest.Start).Milliseconds())
			a.relay()
			var batches []struct{ Events int }
			require.NoError(t, json.Unmarshal([]byte(a.Do(step.Token, "GET", "/subscriber/batches", "").Body), &batches))
			assert.Equal(t, []struct{ Events int }{{2}}, batches, "in partition %d", i)
		}
	})
}

// TestTheHistoryOfATopicIsAtItsHome and so is its live tail.
func TestTheHistoryOfATopicIsAtItsHome(t *testing.T) {
	eachParted(t, func(t *testing.T, a parted) {
		url := a.Run()
		for i := range a.bus.All {
			topic := string(a.bus.TopicIn(rdb.Number(i), 0))
			a.RequireDone(alice, "POST", "/topics/"+topic, `{"type":"noop","url":"https://x.example/1"}`)
			a.RequireDone(alice, "PUT", "/topics/"+topic+"/history", `{"events":10}`)
			request, err := http.NewRequestWithContext(t.Context(), "GET", url+"/topics/"+topic+"/tail", nil)
			require.NoError(t, err)
			request.SetBasicAuth(bob, "")
			tail, err := http.DefaultClient.Do(request)
			require.NoError(t, err)
			a.RequireDone(alice, "POST", "/topics/"+topic, `{"type":"noop","url":"https://x.example/2"}`)
			var shown strings.Builder
			for part := make([]byte, 1000); !strings.Contains(shown.String(), "https://x.example/2"); {
				n, err := tail.Body.Read(part)
				require.NoError(t, err)
				shown.Write(part[:n])
			}
			require.NoError(t, tail.Body.Close())
			var kept struct{ Events []struct{ URL string } }
			a.read("/topics/"+topic+"/events", &kept)
			require.Len(t, kept.Events, 1)
			assert.Equal(t, "https://x.example/2", kept.Events[0].URL)
			a.RequireDone(alice, "DELETE", "/topics/"+topic+"/history", "")
		}
	})
}

// TestAPartitionThatIsAway is the first to be away of three.
func TestAPartitionThatIsAway(t *testing.T) {
	eachParted(t, func(t *testing.T, a parted) {
		for i := range a.bus.All {
			a.RequireDone(alice, "POST", "/topics/"+string(a.bus.TopicIn(rdb.Number(i), 0)), `{"type":"noop","url":"https://x.example/1"}`)
		}
		_, err := a.bus.All[1].Hold(t.Context(), 0)
		require.NoError(t, err)
		for i, want := range []int{200, 503, 200} {
			topic := string(a.bus.TopicIn(rdb.Number(i), 0))
			assert.Equal(t, want, a.Do(alice, "POST", "/topics/"+topic, `{"type":"noop","url":"https://x.example/1"}`).Status, "in partition %d", i)
		}
		require.NoError(t, a.bus.All[1].Release(t.Context()))
		a.RequireDone(alice, "POST", "/topics/"+string(a.bus.TopicIn(1, 0)), `{"type":"noop","url":"https://x.example/1"}`)
	})
}
