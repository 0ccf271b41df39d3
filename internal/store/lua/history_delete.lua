-- Removes the history of a topic, which keeps none from now on.
--
-- ARGV     1 namespace, 2 topic, 3 caller's token, empty for root
-- Returns  {1}; {0, 'topic unknown'}; {0, 'topic claimed'} when it is another client's; {0, 'no
--          history'}
local topic = ARGV[2]
if redis.call('SISMEMBER', topics_key(), topic) == 0 then return { 0, 'topic unknown' } end
if not may_manage(topic, ARGV[3]) then return { 0, 'topic claimed' } end
if not remove_history(topic) then return { 0, 'no history' } end
return { 1 }
