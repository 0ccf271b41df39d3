-- Deletes a subscriber.
--
-- ARGV     1 namespace, 2 token
-- Returns  {1}; {0, 'not subscribed'} when there is no such subscriber
allow_when_full()
if not remove_subscriber(holder_of(ARGV[2])) then return { 0, 'not subscribed' } end
return { 1 }
