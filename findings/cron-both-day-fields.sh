#!/usr/bin/env bash
# Seven crontab parsers for Go and JavaScript: what a step in one day field means beside the other.
#
# crontab(5) says that the day of the month and the day of the week both have to match if one of them
# begins with an asterisk, so "0 0 */2 * 1" is each Monday whose day of the month is odd. A good
# guess: parsers that call their format the standard crontab's agree on that. They do not, and so the
# same line runs three times as often, or not, after a service moves from one to another:
#
#   - robfig/cron 3.0.1, gorhill/cronexpr, cron-parser 5.10.6, croner 11.0.1 and cron 4.4.0 take "*/2"
#     for a list of days like any other: each Monday, and each odd day.
#   - netresearch/go-cron 0.9.1 (a fork of robfig/cron) and adhocore/gronx 1.19.6 follow crontab(5).
#   - For "1-31/2", which has no asterisk, crontab(5) means either. Only netresearch/go-cron wants both:
#     it looks at the step, not at the asterisk.
#
# Seen: the lines that `wanted` has below (the first six days from 2026-11-01 on, month and day).
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

cat > go.mod <<'GO'
module finding

go 1.26

require (
	github.com/adhocore/gronx v1.19.6
	github.com/gorhill/cronexpr v0.0.0-20180427100037-88b0669f7d75
	github.com/netresearch/go-cron v0.9.1
	github.com/robfig/cron/v3 v3.0.1
)
GO
cat > main.go <<'GO'
package main

import (
	"fmt"
	"log"
	"time"

	"github.com/adhocore/gronx"
	"github.com/gorhill/cronexpr"
	netresearch "github.com/netresearch/go-cron"
	"github.com/robfig/cron/v3"
)

func main() {
	for _, line := range []string{"0 0 */2 * 1", "0 0 1-31/2 * 1"} {
		show("robfig/cron", line, must(cron.ParseStandard(line)).Next)
		show("cronexpr", line, must(cronexpr.Parse(line)).Next)
		show("go-cron", line, must(netresearch.ParseStandard(line)).Next)
		show("gronx", line, func(t time.Time) time.Time { return must(gronx.NextTickAfter(line, t, false)) })
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

// show prints the first six days at which a line is due.
func show(parser, line string, next func(time.Time) time.Time) {
	fmt.Printf("%s, %s:", line, parser)
	at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for range 6 {
		at = next(at)
		fmt.Print(" ", at.Format("01-02"))
	}
	fmt.Println()
}
GO
cat > show.mjs <<'JS'
import { CronExpressionParser } from 'cron-parser';
import { Cron } from 'croner';
import { CronTime } from 'cron';

const from = new Date('2026-11-01T00:00:00Z');
const days = (line, parser, dates) =>
  console.log(`${line}, ${parser}:`, ...dates.map((date) => date.toISOString().slice(5, 10)));
for (const line of ['0 0 */2 * 1', '0 0 1-31/2 * 1']) {
  const parsed = CronExpressionParser.parse(line, { currentDate: from, tz: 'UTC' });
  days(line, 'cron-parser', parsed.take(6).map((date) => date.toDate()));
  days(line, 'croner', new Cron(line, { timezone: 'UTC' }).nextRuns(6, from));
  const dates = [from];
  while (dates.length < 7) {
    dates.push(new CronTime(line, 'UTC').getNextDateFrom(dates.at(-1), 'UTC').toJSDate());
  }
  days(line, 'cron', dates.slice(1));
}
JS
{
	go mod tidy
	npm init --yes
	npm install cron-parser@5.10.6 croner@11.0.1 cron@4.4.0
} >log 2>&1 || { cat log; exit 1; }
{ go run . && node show.mjs; } | tee seen

cat > wanted <<'TEXT'
0 0 */2 * 1, robfig/cron: 11-02 11-03 11-05 11-07 11-09 11-11
0 0 */2 * 1, cronexpr: 11-02 11-03 11-05 11-07 11-09 11-11
0 0 */2 * 1, go-cron: 11-09 11-23 12-07 12-21 01-11 01-25
0 0 */2 * 1, gronx: 11-09 11-23 12-07 12-21 01-11 01-25
0 0 1-31/2 * 1, robfig/cron: 11-02 11-03 11-05 11-07 11-09 11-11
0 0 1-31/2 * 1, cronexpr: 11-02 11-03 11-05 11-07 11-09 11-11
0 0 1-31/2 * 1, go-cron: 11-09 11-23 12-07 12-21 01-11 01-25
0 0 1-31/2 * 1, gronx: 11-02 11-03 11-05 11-07 11-09 11-11
0 0 */2 * 1, cron-parser: 11-02 11-03 11-05 11-07 11-09 11-11
0 0 */2 * 1, croner: 11-02 11-03 11-05 11-07 11-09 11-11
0 0 */2 * 1, cron: 11-02 11-03 11-05 11-07 11-09 11-11
0 0 1-31/2 * 1, cron-parser: 11-02 11-03 11-05 11-07 11-09 11-11
0 0 1-31/2 * 1, croner: 11-02 11-03 11-05 11-07 11-09 11-11
0 0 1-31/2 * 1, cron: 11-02 11-03 11-05 11-07 11-09 11-11
TEXT
diff wanted seen
