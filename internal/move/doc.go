// Package move moves a bus from one Redis to another: to a Redis Cluster, back, or to another
// number of partitions. The bus serves meanwhile. No answered publish is lost, and no subscriber
// gets two events of a topic in another order than they were published in.
//
// Batches stay where they are. What makes the bus what it is, its tokens, topics and subscribers,
// is copied; from one moment on, events are published to the new bus; and each subscriber gets
// nothing from there until the workers of the old bus have delivered all that waits there for it.
//
//	        old bus            new bus
//	        open               -
//	begin   open               closed, spare
//	copy    open, old          closed, new       all subscribers are held; can be repeated
//	switch  closed, old        closed, new       a moment: what has changed is copied
//	switch  closed, switched   closed, new       the step that decides
//	drain   closed, switched   open, new         those are released that have nothing left there
//	over    closed, over       open              nothing is left of the move
//
// A bus that is closed takes no publish and no change by a client: they get 503, and its web is not
// ready. That is decided in the script of each of them, so it holds from one script to the next
// whatever processes run; and both are never open. So the order of a publisher who awaits each
// answer is kept, whichever web it asks. The marks that say all this are a field of the plans,
// see package fence; a bus that does not move reads none.
//
// Each step can be repeated, and a crash between any two leaves what the next run goes on from. Any
// number of runs may be under way at once: marks are compared and set, the one in the first
// partition of a bus decides, and what a run writes needs the mark that it has set. So one run goes
// on, and the others stop. From old to switched an old bus goes only from the mark that names the
// run which has closed it, and copied all since; a cancel takes it from old to cancelled, and to no
// mark when the new one is spare.
package move
