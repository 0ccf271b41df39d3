-- Ends the relaying of a topic's events to all other partitions, so that it can be deleted. What is
-- in the outboxes is still relayed.
--
-- ARGV     1 namespace, 2 topic, 3 token of who asks, empty for root
-- Returns  {1, number, events, ...}: of each partition to which anything is relayed, how many
--          events will have been carried there, ever, once what is in its outbox has been;
--          {0, 'topic unknown'}; {0, 'topic claimed'} when it is another client's
allow_when_full()
local topic, by = ARGV[2], ARGV[3]
if redis.call('SISMEMBER', topics_key(), topic) == 0 then return { 0, 'topic unknown' } end
if not may_manage(topic, by) then return { 0, 'topic claimed' } end
local result = { 1 }
for _, job in ipairs(redis.call('SMEMBERS', jobs_index_key('relay'))) do
  local _, number = unpack_job(job)
  local carried = tonumber(redis.call('HGET', relay_carried_key(), number)) or 0
  table.insert(result, number)
  table.insert(result, carried + redis.call('LLEN', outbox_key(number)))
end
redis.call('DEL', outboxes_key(topic))
return result
