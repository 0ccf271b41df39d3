-- Deletes a subscriber.
--
-- ARGV     1 namespace, 2 token
-- Returns  1, or 0 when there is no such subscriber
allow_when_full()
return remove_subscriber(holder_of(ARGV[2]))
