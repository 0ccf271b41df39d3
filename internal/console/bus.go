package console

import (
	"slices"
)

// busPages show the bus.
func busPages() []Page {
	return slices.Concat([]Page{
		{Path: "", Template: "overview", Nav: "Overview", For: Members, Common: true, Load: loadOverview},
		{Path: "topics", Template: "topics", Nav: "Topics", For: Members, Common: true, Load: loadTopics},
		{Path: topicPath, Template: "topic", For: Members, Load: loadTopic},
		{Path: sentPath, Template: "sent", For: Members, Load: loadSent},
		deleteTopic.Page(),
		{Path: "subscribers", Template: "subscribers", Nav: "Subscribers", For: Members, Common: true, Load: loadSubscribers},
		{Path: "work", Template: "work", Nav: "Workers", For: Root, Load: loadWork},
		{Path: "work/{queue}", Template: "queue", For: Root, Load: loadQueue},
		{Path: "tokens", Template: "tokens", Nav: "Tokens", For: Root, Load: loadTokens},
		{Path: "tokens/new", Template: "new-token", For: Root, Load: loadNewToken, Submit: submitNewToken, Calls: "POST /api_tokens"},
		revoke.Page(),
		{Path: "activity", Template: "activity", Nav: "Activity", For: Root, Load: loadActivity},
		endSessions.Page(),
		{Path: "publish", Template: "publish", Nav: "Send", For: Members, Load: loadPublish, Submit: submitPublish, Calls: "POST /topics/{topic}"},
	}, subscriberPages(), jobPages(), machinePages())
}
