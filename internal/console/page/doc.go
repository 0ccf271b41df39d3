// Package page says what a page of the console is: a [Page] is a row of a table, made for a
// [Visit].
//
//	{Path: "topics/{topic}/delete", Template: "topic-delete", For: page.Members,
//		Load: loadTopic, Submit: deleteTopic, Calls: "DELETE /topics/{topic}"}
//
//	func loadTopic(v *page.Visit) (any, error) { … }
//	func deleteTopic(v *page.Visit) (page.Answer, error) {
//		topic := v.Path("topic")
//		if err := v.Bus.DeleteTopic(v.Context(), topic); err != nil {
//			return page.Answer{}, err
//		}
//		return page.SeeOther("Deleted topic "+topic+".", "topics"), nil
//	}
package page
