package tail

import (
	"bytes"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestATailListensOnLoopbackForABusOnThisHost(t *testing.T) {
	for _, listen := range []string{":0", "localhost:0", "[::1]:0", "0.0.0.0:0"} {
		t.Run(listen, func(t *testing.T) {
			o := Options{Topics: []string{"widgets"}, BusURL: "http://127.0.0.1:1", Listen: listen, Exec: Exec{Timeout: time.Second}}
			require.NoError(t, o.Validate())
			receiver, err := o.listen()
			if err != nil && listen == "[::1]:0" {
				t.Skip("this host has no IPv6")
			}
			require.NoError(t, err)
			defer receiver.Close()
			callback, err := url.Parse(receiver.URL())
			require.NoError(t, err)
			assert.True(t, net.ParseIP(callback.Hostname()).IsLoopback(), callback.Host)
		})
	}
}

func TestMessagesHaveNothingThatATerminalActsOn(t *testing.T) {
	var out bytes.Buffer
	shown := &tail{Options: Options{Errors: &out}}
	shown.say("the bus says %s", "a\x1b[2J\u009b2J\rb\u202e")
	assert.Equal(t, "rtm: the bus says a\\u001b[2J\\u009b2J\\u000db\\u202e\n", out.String())
}
