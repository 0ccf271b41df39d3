-- Replays of a topic's history to a subscriber. Package replay has the steps that copy; these are
-- the parts that other scripts need.

-- Whether a replay of a subscriber copies, or has events in its queue.
local function has_replay(token)
  for _, id in ipairs(redis.call('SMEMBERS', replays_key(token))) do
    if redis.call('SISMEMBER', running_replays_key(), id) == 1 then return true end
  end
  return false
end

-- Removes a replay, but for the batches that it has filled.
local function remove_replay(token, id)
  redis.call('DEL', replay_key(id), replay_batches_key(id))
  redis.call('SREM', running_replays_key(), id)
  redis.call('SREM', replays_key(token), id)
end

local function remove_replays(token)
  for _, id in ipairs(redis.call('SMEMBERS', replays_key(token))) do remove_replay(token, id) end
end
