package pages

import (
	"slices"

	"routemaster/internal/console/page"
	"routemaster/internal/console/pages/jobs"
	"routemaster/internal/console/pages/machines"
	"routemaster/internal/console/pages/subscribers"
)

// busPages show the bus.
func busPages() []page.Page {
	return slices.Concat([]page.Page{
		{Path: "", Template: "overview", Nav: "Overview", For: page.Members, Common: true, Load: loadOverview},
		{Path: "topics", Template: "topics", Nav: "Topics", For: page.Members, Common: true, Load: loadTopics},
		{Path: topicPath, Template: "topic", For: page.Members, Load: loadTopic},
		{Path: sentPath, Template: "sent", For: page.Members, Load: loadSent},
		deleteTopic.Page(),
		{Path: "subscribers", Template: "subscribers", Nav: "Subscribers", For: page.Members, Common: true, Load: loadSubscribers},
		{Path: "work", Template: "work", Nav: "Workers", For: page.Root, Load: loadWork},
		{Path: "work/{queue}", Template: "queue", For: page.Root, Load: loadQueue},
		{Path: "tokens", Template: "tokens", Nav: "Tokens", For: page.Root, Load: loadTokens},
		{Path: "tokens/new", Template: "new-token", For: page.Root, Load: loadNewToken, Submit: submitNewToken, Calls: "POST /api_tokens"},
		revoke.Page(),
		{Path: "activity", Template: "activity", Nav: "Activity", For: page.Root, Load: loadActivity},
		endSessions.Page(),
		{Path: "publish", Template: "publish", Nav: "Send", For: page.Members, Load: loadPublish, Submit: submitPublish, Calls: "POST /topics/{topic}"},
		{Path: "api", Template: "api", Nav: "API", For: page.Members, Load: loadAPI},
	}, subscribers.Pages(), jobs.Pages(), machines.Pages())
}
