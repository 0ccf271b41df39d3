// Package move moves a bus from one Redis to another: to a Redis Cluster, back, or to another
// number of partitions. The bus serves meanwhile. No answered publish is lost, and no subscriber
// gets two events of a topic in another order than they were published in.
//
// Batches stay where they are. What makes the bus what it is, its tokens, topics and subscribers,
// is copied; from one moment on, events are published to the new bus; and each subscriber gets
// nothing from there until the workers of the old bus have delivered all that waits there for it.
//
//	        old bus          new bus
//	        open             -
//	copy    open             closed, all subscribers held      can be repeated
//	switch  closed           closed                            a moment: what has changed is copied
//	switch  closed           open
//	drain   closed           open, those released that have nothing left there
//	over    closed           nothing is left of the move
//
// A bus that is closed takes no publish and no change by a client: they get 503, and its web is not
// ready. That is decided in the script of each of them, so it holds from one script to the next
// whatever processes run; and both are never open. So the order of a publisher who awaits each
// answer is kept, whichever web it asks. The marks that say all this are a field of the plans,
// see package fence; a bus that does not move reads none.
//
// Each step can be repeated, and a crash between any two leaves what the next run goes on from.
package move
