-- Begins to delete a topic whose events are relayed to other partitions, and locks out other
-- deletions of it meanwhile.
--
-- ARGV     1 namespace, 2 topic, 3 caller's token, empty for root, 4 UID of the deletion, 5 how
--          long it may take (ms)
-- Returns  {1, number, generation, events, ...} for each partition to which its events are relayed:
--          its number, its generation, and how many events will ever have been carried there once
--          its outbox is empty; {0, 'topic unknown'}; {0, 'topic claimed'} when it is
--          another client's; {0, 'deleting'} while another deletion of it runs
allow_when_full()
local topic, by = ARGV[2], ARGV[3]
if redis.call('SISMEMBER', topics_key(), topic) == 0 then return { 0, 'topic unknown' } end
if not may_manage(topic, by) then return { 0, 'topic claimed' } end
if redis.call('EXISTS', deleting_key(topic)) == 1 then return { 0, 'deleting' } end
local result = { 1 }
local relayed = redis.call('HGETALL', outboxes_key(topic))
for i = 1, #relayed, 2 do
  local number = relayed[i]
  local carried = tonumber(redis.call('HGET', relay_carried_key(), number)) or 0
  table.insert(result, number)
  table.insert(result, relayed[i + 1])
  table.insert(result, carried + redis.call('LLEN', outbox_key(number)))
end
redis.call('SET', deleting_key(topic), ARGV[4], 'PX', ARGV[5])
return result
