// Package console is the console: pages that show the bus in a browser, and forms that change it.
//
// It has no permissions of its own. The figures of its pages are from [Live], the same for all
// visitors. All other reads and all changes go through the HTTP API of the bus, in the visitor's
// name: the console calls the API in this process, with the credentials of the session.
//
// A [Page] is a row of a table, made for a [Visit]. Its template is in templates:
//
//	{Path: "topics/{topic}/delete", Template: "topic-delete", For: Members,
//		Load: loadTopic, Submit: deleteTopic, Calls: "DELETE /topics/{topic}"}
//
//	func loadTopic(v *Visit) (any, error) { … }
//	func deleteTopic(v *Visit) (Answer, error) {
//		topic := v.Path("topic")
//		if err := v.Bus.DeleteTopic(v.Context(), topic); err != nil {
//			return Answer{}, err
//		}
//		return SeeOther("Deleted topic "+topic+".", "topics"), nil
//	}
package console
