-- Deletes a topic and all subscriptions to it. Events that are queued stay.
--
-- ARGV     1 namespace, 2 topic, 3 token of who asks, empty for root
-- Returns  {1}; {0, 'topic unknown'}; {0, 'topic claimed'} when it is another client's
local topic, by = ARGV[2], ARGV[3]
if redis.call('SISMEMBER', topics_key(), topic) == 0 then return { 0, 'topic unknown' } end
if by ~= '' then
  local publisher = redis.call('HGET', topic_key(topic), 'publisher')
  if not publisher or publisher == '' then return { 0, 'topic claimed' } end
  local client = redis.call('HGET', tokens_key(), by)
  if publisher ~= by and (not client or client ~= owner_name(topic, publisher)) then
    return { 0, 'topic claimed' }
  end
end
remove_topic(topic)
return { 1 }
