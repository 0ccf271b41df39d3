// Package subscribers has the pages of one subscriber: how it is, what waits for it, what the bus
// has given up on, and all that its client, or root, may do about that.
package subscribers

import "routemaster/internal/console/page"

// Pages are the pages.
func Pages() []page.Page {
	all := []page.Page{
		{Path: subscriberPath, Template: "subscriber", For: page.Members, Load: loadSubscriber},
		{Path: settingsPath, Template: "settings", For: page.Members, Load: loadSettings, Submit: submitSettings, Calls: "PATCH /subscriber"},
		{Path: replayPath, Template: "replay", For: page.Members, Load: loadReplay, Submit: submitReplay, Calls: "POST /subscriber/replays"},
		{Path: lettersPath, Template: "dead-letters", For: page.Members, Load: loadLetters},
		{Path: letterPath, Template: "dead-letter", For: page.Members, Load: loadLetter},
		{Path: batchPath, Template: "batch", For: page.Members, Load: loadBatch},
	}
	for _, a := range actions {
		all = append(all, a.page())
	}
	return all
}
