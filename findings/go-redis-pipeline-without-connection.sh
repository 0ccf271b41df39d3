#!/usr/bin/env bash
# go-redis 9.23.0: what the commands of a pipeline say when Redis refuses the connection's set-up.
#
# A good guess: when a pipeline fails as a whole, each of its commands has the error, so that code may
# look at the commands instead of at Exec. That holds if the address cannot be dialled. It does not
# hold if Redis answers and refuses what go-redis sends first on a new connection (a wrong password
# here; a database number that is too high is another case). Exec returns the error then, and each
# command says that it succeeded, with the zero value: an INCR gives 0 and nil, a SET and a GET give
# "" and nil, in a transaction too. A single command outside a pipeline has the error.
#
# Seen: the lines that `wanted` has below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

cat > go.mod <<'GO'
module finding

go 1.26

require (
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/redis/go-redis/v9 v9.23.0
)
GO
cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

func main() {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	server.RequireAuth("right")
	ctx := context.Background()

	refused := redis.NewClient(&redis.Options{Addr: server.Addr(), Password: "wrong", MaxRetries: -1})
	value, err := refused.Incr(ctx, "n").Result()
	fmt.Println("single, refused: INCR", value, short(err))
	show(ctx, "pipeline, refused", refused.Pipeline())
	show(ctx, "transaction, refused", refused.TxPipeline())

	// Port 1 of loopback, at which nothing listens.
	away := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	show(ctx, "pipeline, not dialled", away.Pipeline())
}

func show(ctx context.Context, kind string, pipe redis.Pipeliner) {
	get, set, incr := pipe.Get(ctx, "a"), pipe.Set(ctx, "a", "1", 0), pipe.Incr(ctx, "n")
	_, err := pipe.Exec(ctx)
	fmt.Printf("%s: Exec %s, GET %q %s, SET %q %s, INCR %d %s\n", kind, short(err),
		get.Val(), short(get.Err()), set.Val(), short(set.Err()), incr.Val(), short(incr.Err()))
}

// short leaves out what differs from run to run.
func short(err error) string {
	if err == nil {
		return "nil"
	}
	if strings.Contains(err.Error(), "connection refused") {
		return "connection refused"
	}
	code, _, _ := strings.Cut(err.Error(), " ")
	return code
}
GO
go mod tidy >log 2>&1 || { cat log; exit 1; }
go run . 2>/dev/null | tee seen

cat > wanted <<'TEXT'
single, refused: INCR 0 WRONGPASS
pipeline, refused: Exec WRONGPASS, GET "" nil, SET "" nil, INCR 0 nil
transaction, refused: Exec WRONGPASS, GET "" nil, SET "" nil, INCR 0 nil
pipeline, not dialled: Exec connection refused, GET "" connection refused, SET "" connection refused, INCR 0 connection refused
TEXT
diff wanted seen
