package jobs

import (
	"regexp"
	"strings"
	"testing"

	"routemaster/internal/rdb/rdbtest"
)

func TestScriptsNameTheirArgumentsAsGoDoes(t *testing.T) {
	t.Parallel()
	rdbtest.RequireArguments(t, lua("job_report"), reportArgs.list)
	rdbtest.RequireArguments(t, lua("type_put"), typeArgs.list)
}

func TestScriptsNameTheirRepliesAsGoDoes(t *testing.T) {
	t.Parallel()
	rdbtest.RequireReply[runReply](t, lua("lib/kind"), "function payload_of(job, type)")
	_, show, _ := strings.Cut(lua("lib/steps"), "function show_job(id)")
	read := regexp.MustCompile(`'HMGET', job_key\(id\), ([\w', \n]+)\)`).FindStringSubmatch(show)[1]
	rdbtest.RequireNames[jobFields](t, regexp.MustCompile(`\w+`).FindAllString(read, -1))
}
