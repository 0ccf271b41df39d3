package web_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web/webtest"
)

var nextPage = regexp.MustCompile(`^<(/\S+)>; rel="next"$`)

// TestShortListsHavePages reads the lists that are read as a whole: page by page, also when the
// element that a page ends with is removed meanwhile.
func TestShortListsHavePages(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newSubscriberAPI(t, redis)
		a.RequireDone(bob, "POST", "/topics/widgets", webtest.EventText(1))
		a.RequireDone(bob, "PUT", "/topics/widgets/history", `{"events":1000}`)
		a.RequireDone(bob, "POST", "/topics/widgets", webtest.EventText(2))
		a.RequireDone(alice, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://a.example/","timeout":0}`)
		made := func(path, body string) (id string) {
			got := a.Do(alice, "POST", path, body)
			require.Less(t, got.Status, 300, got.Body)
			var one struct{ ID string }
			require.NoError(t, json.Unmarshal([]byte(got.Body), &one))
			a.Ahead += time.Second
			return one.ID
		}
		var secrets, replays []string // newest first
		for range 4 {
			secrets = append([]string{made("/subscriber/secrets", "")}, secrets...)
			replay := made("/subscriber/replays", `{"topic":"widgets","from":1}`)
			a.RequireDone(alice, "DELETE", "/subscriber/replays/"+replay, "") // one runs at a time
			replays = append([]string{replay}, replays...)
		}
		read := func(who, path string) (ids []string, next string) {
			got := a.Do(who, "GET", path, "")
			require.Equal(t, 200, got.Status, got.Body)
			var page []struct{ ID string }
			require.NoError(t, json.Unmarshal([]byte(got.Body), &page))
			for _, one := range page {
				ids = append(ids, one.ID)
			}
			if link := got.Header.Get("Link"); link != "" {
				require.Regexp(t, nextPage, link)
				next = nextPage.FindStringSubmatch(link)[1]
			}
			return ids, next
		}
		for below, all := range map[string][]string{"secrets": secrets, "replays": replays} {
			for who, path := range map[string]string{alice: "/subscriber/" + below, rootKey: "/subscribers/alice--1/" + below} {
				ids, next := read(who, path)
				assert.Equal(t, all, ids)
				assert.Empty(t, next)
				for size := 1; size <= 4; size++ {
					var paged []string
					for next = fmt.Sprintf("%s?limit=%d", path, size); next != ""; {
						ids, next = read(who, next)
						assert.LessOrEqual(t, len(ids), size)
						paged = append(paged, ids...)
					}
					assert.Equal(t, all, paged, size)
				}
				for _, query := range []string{"limit=0", "limit=101", "limit=x", "after=", "after=x", "after=1", "after=x.y", "from=1"} {
					assert.Equal(t, 400, a.Problem(who, "GET", path+"?"+query, "").Status, query)
				}
			}
		}
		_, next := read(alice, "/subscriber/secrets?limit=2")
		a.RequireDone(alice, "DELETE", "/subscriber/secrets/"+secrets[1], "")
		ids, _ := read(alice, next)
		assert.Equal(t, secrets[2:], ids)
		a.RequireDone(alice, "DELETE", "/subscriber/secrets/"+secrets[2], "")
		a.RequireDone(alice, "DELETE", "/subscriber/secrets/"+secrets[3], "")
		ids, next = read(alice, next)
		assert.Empty(t, ids)
		assert.Empty(t, next)
	})
}
