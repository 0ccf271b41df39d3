-- Deletes a topic and all subscriptions to it. Events that are queued stay.
--
-- ARGV     1 namespace, 2 topic, 3 caller's token, empty for root
-- Returns  {1}; {0, 'topic unknown'}; {0, 'topic claimed'} when it is another client's
local topic, by = ARGV[2], ARGV[3]
if redis.call('SISMEMBER', topics_key(), topic) == 0 then return { 0, 'topic unknown' } end
if not may_manage(topic, by) then return { 0, 'topic claimed' } end
remove_topic(topic)
return { 1 }
