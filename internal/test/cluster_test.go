package test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/test/bustest"
)

// clusterLoad publishes to a topic, one event after the other. It sends an event again, under its
// idempotency key, until it is answered.
type clusterLoad struct {
	bus       *bustest.Bus
	token     string
	topic     string
	published int
}

func (l *clusterLoad) publish(t *testing.T) {
	number := l.published + 1
	assert.Eventually(t, func() bool { return l.send(number) == http.StatusOK }, bustest.WaitTimeout, time.Millisecond, "%s %d", l.topic, number)
	l.published = number
}

func (l *clusterLoad) send(number int) (status int) {
	request, err := http.NewRequest("POST", l.bus.API+"/topics/"+l.topic, strings.NewReader(bustest.EventBody(number)))
	if err != nil {
		return 0
	}
	request.SetBasicAuth(l.token, "")
	request.Header.Set("Idempotency-Key", fmt.Sprint(l.topic, number))
	response, err := l.bus.Client.Do(request)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// TestABusOnACluster publishes to topics of several partitions for subscribers in several, while a
// partition moves, a master hands over to its replica, and another one is killed. Every subscriber
// gets every event, and the events of a topic in order.
func TestABusOnACluster(t *testing.T) {
	t.Run("key by key", func(t *testing.T) {
		busOnACluster(t, rdbtest.Engine(), func(c *rdbtest.Cluster, p *rdb.Partition, to *rdbtest.Node) {
			move := c.Move(t, p, to)
			for move.Keys(t, 10) > 0 {
			}
			move.End(t)
		})
	})
	t.Run("at once", func(t *testing.T) {
		if !rdbtest.HasServer(rdbtest.Valkey) {
			t.Skip("valkey-server, from version 9 on, is not installed")
		}
		busOnACluster(t, rdbtest.Valkey, func(c *rdbtest.Cluster, p *rdb.Partition, to *rdbtest.Node) { c.MoveAtOnce(t, p, to) })
	})
}

func busOnACluster(t *testing.T, server string, move func(c *rdbtest.Cluster, p *rdb.Partition, to *rdbtest.Node)) {
	t.Parallel()
	const masters, partitions, topics, subscribers = 3, 12, 6, 3
	cluster := rdbtest.NewCluster(t, masters, time.Second, func(o *rdbtest.ClusterOptions) { o.Server = server })
	b := bustest.StartOnCluster(t, cluster, partitions, func(c *app.Config) { c.MinReplicas = 1 })
	parts := cluster.Open(t).Partitions("", partitions)
	requireReady(t, b)

	var names []string
	for i := range topics {
		names = append(names, fmt.Sprintf("topic_%c", 'a'+i))
	}
	var all []*bustest.Subscriber
	for i := range subscribers {
		s := bustest.NewSubscriber(t, b.AddClient(fmt.Sprintf("subscriber-%d", i)))
		s.Subscribe(b, 10, 20, names...)
		all = append(all, s)
	}
	publisher := b.AddClient("publisher")
	var loads []*clusterLoad
	publishers := bustest.NewLoad(t)
	for _, name := range names {
		l := &clusterLoad{bus: b, token: publisher, topic: name}
		loads = append(loads, l)
		publishers.Repeat(func() { l.publish(t) })
	}
	got := func(events int) {
		t.Helper()
		want := len(all[0].Numbers()) + events
		require.Eventually(t, func() bool { return len(all[0].Numbers()) >= want }, bustest.WaitTimeout, time.Millisecond)
	}

	got(300)
	home := parts.Home("topic_a")
	from := cluster.MasterOf(t, home)
	require.NotNil(t, from)
	to := cluster.Nodes[0]
	if to == from {
		to = cluster.Nodes[1]
	}
	move(cluster, home, to)
	got(300)
	cluster.FailOver(t, parts.Home("topic_b"))
	got(300)
	victim := cluster.MasterOf(t, home)
	require.NotNil(t, victim)
	victim.Kill(t)
	cluster.RequireMaster(t, home, cluster.ReplicaOf(victim))
	victim.Restart(t) // or nothing would be confirmed there
	got(300)
	publishers.End()

	for _, s := range all {
		for _, l := range loads {
			require.Eventually(t, func() bool { return len(firsts(s, l.topic)) == l.published }, bustest.WaitTimeout, 10*time.Millisecond,
				"%s gets %d of %s", s.Token, l.published, l.topic)
			for i, number := range firsts(s, l.topic) {
				require.Equal(t, i+1, number, "%s of %s", l.topic, s.Token)
			}
		}
	}
	requireNothingLeftIn(t, parts)
	require.Eventually(t, func() bool {
		values := scrape(t, &http.Client{Transport: rootOf{b.Client.Transport}}, b.API+"/metrics")
		up := 0
		for _, node := range cluster.Nodes {
			up += int(values[fmt.Sprintf(`routemaster_redis_up{node=%q}`, node.Address)])
		}
		for i := range partitions {
			up += int(values[fmt.Sprintf(`routemaster_partition_up{partition="%02d"}`, i)])
		}
		return up == masters+partitions
	}, bustest.WaitTimeout, 100*time.Millisecond)
	fullest := regexp.MustCompile(`"node":"127\.0\.0\.1:\d+","nodes":3}`)
	require.Eventually(t, func() bool {
		return fullest.MatchString(b.Call(bustest.RootKey, "GET", "/overview", "", http.StatusOK))
	}, bustest.WaitTimeout, 100*time.Millisecond)
	assert.NotContains(t, b.Call(publisher, "GET", "/overview", "", http.StatusOK), `"node":`)
}

// requireReady waits until the bus takes requests.
func requireReady(t *testing.T, b *bustest.Bus) {
	t.Helper()
	require.Eventually(t, func() bool { return isReady(b) }, bustest.WaitTimeout, 10*time.Millisecond)
}

func isReady(b *bustest.Bus) bool {
	status, _, err := bustest.Send(b.Client, b.API, "", "GET", "/health/ready", "")
	return err == nil && status == http.StatusOK
}

// rootOf sends requests as root.
type rootOf struct{ http.RoundTripper }

func (r rootOf) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.SetBasicAuth(bustest.RootKey, "")
	return r.RoundTripper.RoundTrip(request)
}

// firsts are the numbers of a topic's events in the order in which a subscriber first got them: a
// delivery may be repeated.
func firsts(s *bustest.Subscriber, topic string) (numbers []int) {
	seen := map[int]bool{}
	for _, batch := range s.Acknowledged() {
		for i, number := range batch.Numbers {
			if batch.Topics[i] == topic && !seen[number] {
				seen[number] = true
				numbers = append(numbers, number)
			}
		}
	}
	return numbers
}

// requireNothingLeftIn waits until no batch, and nothing on its way between partitions, is left.
func requireNothingLeftIn(t *testing.T, parts rdb.Partitions) {
	t.Helper()
	for _, p := range parts {
		var left []string
		require.Eventually(t, func() bool {
			left = nil
			for _, pattern := range []string{"batch*", "relay:0*", "relay:1*", "relay:taken"} {
				err := p.EachKey(t.Context(), p.Namespace()+pattern, func(page []string) error {
					left = append(left, page...)
					return nil
				})
				if err != nil {
					return false
				}
			}
			return len(left) == 0
		}, bustest.WaitTimeout, 10*time.Millisecond)
		require.Empty(t, left)
	}
}

// TestABusStartsWithoutMostNodes of its cluster: neither the one that has the number of partitions
// nor the one of the first partition is there.
func TestABusStartsWithoutMostNodes(t *testing.T) {
	t.Parallel()
	cluster := rdbtest.NewCluster(t, 3, 10*time.Minute, func(o *rdbtest.ClusterOptions) { o.Replicas = 0 })
	b, parts := startWithStores(t, cluster, 12)
	away := map[*rdbtest.Node]bool{cluster.MasterOf(t, parts[0]): true, cluster.MasterOf(t, cluster.Open(t).At("partitions")): true}
	var there *rdb.Partition
	for _, p := range parts {
		if !away[cluster.MasterOf(t, p)] {
			there = p
		}
	}
	publisher, subscriber := b.AddClient("publisher"), subscriberIn(t, b, there, "subscriber")
	topic := topicIn(there, "topic")
	subscriber.Subscribe(b, 10, 20, topic)
	b.StopWeb()
	b.StopWorker()
	for node := range away {
		node.Kill(t)
	}
	b.StartWeb()
	b.StartWorker()
	require.Eventually(t, func() bool {
		b.Call("", "GET", "/health", "", http.StatusOK) // whatever is away
		status, _, err := bustest.Send(b.Client, b.API, publisher, "POST", "/topics/"+topic, bustest.EventBody(1))
		return err == nil && status == http.StatusOK
	}, bustest.WaitTimeout, 10*time.Millisecond)
	require.Eventually(t, func() bool { return len(subscriber.Numbers()) > 0 }, bustest.WaitTimeout, time.Millisecond)

	_, err := there.Hold(t.Context(), 0)
	require.NoError(t, err)
	for _, rule := range []string{"partition-away", "partition-held"} {
		require.Eventually(t, func() bool {
			return strings.Contains(b.Call(bustest.RootKey, "GET", "/overview", "", http.StatusOK), `"rule":"`+rule+`"`)
		}, bustest.WaitTimeout, 10*time.Millisecond, rule)
	}
}
