package console

// subscriberPages are the pages.
func subscriberPages() []Page {
	all := []Page{
		{Path: subscriberPath, Template: "subscriber", For: Members, Load: loadSubscriber},
		{Path: settingsPath, Template: "settings", For: Members, Load: loadSettings, Submit: submitSettings, Calls: "PATCH /subscriber"},
		{Path: replayPath, Template: "replay", For: Members, Load: loadReplay, Submit: submitReplay, Calls: "POST /subscriber/replays"},
		{Path: lettersPath, Template: "dead-letters", For: Members, Load: loadLetters},
		{Path: letterPath, Template: "dead-letter", For: Members, Load: loadLetter},
		{Path: batchPath, Template: "batch", For: Members, Load: loadBatch},
	}
	for _, a := range subscriberActions {
		all = append(all, a.page())
	}
	return all
}
