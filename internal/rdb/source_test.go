package rdb

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSentinelURLs(t *testing.T) {
	for _, c := range []struct {
		url  string
		want source
		db   int
	}{
		{"redis+sentinel://a/bus", source{sentinels: []string{"a:26379"}, master: "bus"}, 0},
		{"redis+sentinel://a:1,[::1]:2,10.0.0.3/bus/7", source{sentinels: []string{"a:1", "[::1]:2", "10.0.0.3:26379"}, master: "bus"}, 7},
		{"redis+sentinel://a/bus?sentinel_username=s&sentinel_password=t&read_timeout=9", source{
			sentinels: []string{"a:26379"}, master: "bus", sentinelUsername: "s", sentinelPassword: "t",
		}, 0},
	} {
		got, err := parseSource(c.url)
		require.NoError(t, err, c.url)
		assert.Equal(t, c.db, got.options.DB, c.url)
		assert.Nil(t, got.options.TLSConfig, c.url)
		got.options = c.want.options
		assert.Equal(t, c.want, got, c.url)
	}
	got, err := parseSource("rediss+sentinel://user:p%40ss@a,b/bus/1?read_timeout=9")
	require.NoError(t, err)
	assert.Equal(t, "user", got.options.Username)
	assert.Equal(t, "p@ss", got.options.Password)
	assert.Equal(t, 9.0, got.options.ReadTimeout.Seconds())
	require.NotNil(t, got.options.TLSConfig)
	assert.Empty(t, got.options.TLSConfig.ServerName, "each server has its own name")
	assert.Equal(t, []string{"a:26379", "b:26379"}, got.sentinels)

	for _, wrong := range []string{
		"redis+sentinel://", "redis+sentinel:///bus", "redis+sentinel://a", "redis+sentinel://a/", "redis+sentinel://a,,b/bus",
		"redis+sentinel://a:x/bus", "redis+sentinel://a/bus/x", "redis+sentinel://a/bus/0/more", "redis+sentinel://a/bus?unknown=1",
		"http+sentinel://a/bus", "redis+sentinel://a:99999/bus", "redis+sentinel://a:0/bus", "redis+sentinel://::1/bus", "redis+sentinel://a/bus/-1",
		"redis+sentinel://a%ss@b/bus",
	} {
		_, err := parseSource(wrong)
		assert.Error(t, err, wrong)
	}
}

func TestClusterURLs(t *testing.T) {
	got, err := parseSource("redis+cluster://user:p%40ss@a,b:7000,[::1]:7001/?read_timeout=9")
	require.NoError(t, err)
	assert.Equal(t, []string{"a:6379", "b:7000", "[::1]:7001"}, got.Nodes)
	assert.Equal(t, "user", got.options.Username)
	assert.Equal(t, "p@ss", got.options.Password)
	assert.Equal(t, 9*time.Second, got.options.ReadTimeout)
	assert.Nil(t, got.options.TLSConfig)
	for _, url := range []string{"rediss+cluster://a", "rediss+cluster://a/0", "rediss+cluster://a,b/"} {
		got, err = parseSource(url)
		require.NoError(t, err, url)
		require.NotNil(t, got.options.TLSConfig)
		assert.Empty(t, got.options.TLSConfig.ServerName, "each server has its own name")
	}
	for _, wrong := range []string{
		"redis+cluster://", "redis+cluster://a,,b", "redis+cluster://a/1", "redis+cluster://a/bus", "redis+cluster://a?db=1",
		"redis+cluster://a:99999", "redis+cluster://::1", "redis+cluster://a?unknown=1", "http+cluster://a", "redis+clusters://a",
	} {
		_, err := parseSource(wrong)
		assert.Error(t, err, wrong)
	}
}

func TestPasswordsOfURLs(t *testing.T) {
	for url, want := range map[string][]string{
		"redis://a":                                     {"", ""},
		"rediss://user:the%20secret@a/3":                {"the secret", ""},
		"unix://user:secret@/path?db=1":                 {"secret", ""},
		"redis+sentinel://:secret@a,b/m":                {"secret", ""},
		"redis+sentinel://a/m?sentinel_password=theirs": {"", "theirs"},
		"redis+sentinel://:secret@[::1]:26379,[::2]:26379/m?sentinel_password=theirs": {"secret", "theirs"},
		"rediss+cluster://:secret@a,b": {"secret", ""},
	} {
		got, err := parseSource(url)
		require.NoError(t, err, url)
		assert.Equal(t, want, got.Passwords(), url)
	}
}

func TestTheURLSaysHowPatientToBe(t *testing.T) {
	for url, want := range map[string]struct{ dial, margin, answer time.Duration }{
		"redis://127.0.0.1:1":                               {dialTimeout, waitMargin, 3 * time.Second},
		"redis+sentinel://127.0.0.1:1/m":                    {dialTimeout, waitMargin, 3 * time.Second},
		"redis+cluster://127.0.0.1:1":                       {dialTimeout, waitMargin, 3 * time.Second},
		"redis://127.0.0.1:1?dial_timeout=8&read_timeout=9": {8 * time.Second, 9 * time.Second, 9 * time.Second},
		"redis://127.0.0.1:1?read_timeout=2":                {dialTimeout, 2 * time.Second, 2 * time.Second},
		"redis://127.0.0.1:1?dial_timeout=0&read_timeout=0": {dialTimeout, waitMargin, 0},
	} {
		s, err := openSource(url, 1)
		require.NoError(t, err)
		for _, client := range []*redis.Client{s.Connect(), s.ConnectTo("127.0.0.1:1"), s.ConnectNowhere()} {
			assert.Equal(t, want.answer, client.Options().ReadTimeout, url)
			assert.Equal(t, want.answer, client.Options().WriteTimeout, url)
			require.NoError(t, client.Close())
		}
		waiter := s.ConnectWaiter(time.Minute)
		assert.Equal(t, want.dial, waiter.Options().DialTimeout, url)
		assert.Equal(t, time.Minute+want.margin, waiter.Options().ReadTimeout, url)
		require.NoError(t, waiter.Close())
	}
}
