package console

import (
	"net/http"
	"slices"

	"routemaster/internal/console/view"
	"routemaster/internal/format"
)

// allSessions stands for all sessions, where the id of one does.
const allSessions = "all"

// endSessions asks before one session is ended, or all are.
var endSessions = Question{
	Path: "sessions/{session}/end", For: Root, Back: "activity",
	Ask: func(v *Visit) (c view.Confirm, err error) {
		all, err := v.Sessions.All(v.Context())
		if err != nil {
			return c, err
		}
		id := v.Path("session")
		if id == allSessions {
			c.Title, c.Button = "End all sessions", "End "+format.Plural(int64(len(all)), "session")
			c.Effects = []string{"Everybody has to log in again, you too."}
			return c, nil
		}
		i := slices.IndexFunc(all, func(s Listed) bool { return s.ID == id })
		if i < 0 {
			return c, Refuse(http.StatusNotFound, "", "There is no such session, or not any more.")
		}
		c.Title = "End the session of " + named(all[i].Session)
		c.Button, c.Effects = c.Title, []string{"Its browser has to log in again. The token, or root key, stays good."}
		if id == v.Session {
			c.Effects = append(c.Effects, "It is yours.")
		}
		return c, nil
	},
	Do: func(v *Visit) (answer Answer, err error) {
		if id := v.Path("session"); id != allSessions {
			return SeeOther("Ended a session.", "activity"), v.Sessions.EndID(v.Context(), id)
		}
		return SeeOther("Ended all sessions.", "activity"), v.Sessions.EndAll(v.Context())
	},
}

// named is whose a session is.
func named(s Session) string {
	if s.Person == "" {
		return s.Client
	}
	return s.Client + " (" + s.Person + ")"
}
